"""A cache of embedding rows: sets of 64 places each, in which the least recently used row gives way.

An index belongs to the set (index / pre_route_count) mod sets. Source: the operator LRUCacheV2 of CANN. It has no
gradient.
"""

from __future__ import annotations

import threading
from typing import ContextManager

import numpy as np

from npu_shim._tensorflow.tf_api import numpy_function, tf
from npu_shim._tensorflow.types import Tensor, Variable
from npu_shim.ops.in_place import check_variable, scatter_update

_WAYS = 64
_LAST_USE = "_npu_shim_last_use"  # attribute of the variable tag: the number of the call that used each place last
_lock = threading.Lock()


def lru_cache_v2(
    index_list: Tensor, data: Variable, cache: Variable, tag: Variable, is_last_call: Tensor, pre_route_count: int,
    name: str | None = None,
) -> list[Tensor]:  # fmt: skip
    """Look indices up in a cache, and exchange rows of the cache for the rows of those that are not there.

    Args:
        index_list: int32 or int64 [n], rows of data.
        data: float32 [rows, size], a variable.
        cache: float32 [sets 64 size], a variable: the rows at the places.
        tag: of the type of index_list, [sets 64], a variable: the index at each place; below 0 for none.
        is_last_call: 1 to write all rows of the cache back to data, and do nothing else; else 0.
        pre_route_count: a power of 2, the ranks among which indices are dealt out.
        name: name of the ops.
    Returns:
        data, cache and tag after the call; the offset of each index in the cache, -1 if it was not there when the call
        began; the indices that found no place, which are more than 64 of one set, then zeros, [n]; their number, [1].
    Raises:
        TypeError: data, cache or tag is not a variable.
        ValueError: pre_route_count or the number of sets is not a power of 2, or the shapes do not fit.
    """
    for argument, variable in (("data", data), ("cache", cache), ("tag", tag)):
        check_variable("lru_cache_v2", argument, variable)
    (places,), size = tag.shape.as_list(), data.shape.as_list()[-1]
    sets = places // _WAYS
    fits = places % _WAYS == 0 and cache.shape.as_list() == [places * size]
    if not (fits and _is_power_of_two(sets) and _is_power_of_two(pre_route_count)):
        raise ValueError(
            f"lru_cache_v2: a tag of {places}, a cache of {cache.shape.as_list()}, data of {data.shape.as_list()} and "
            f"pre_route_count={pre_route_count!r} are not allowed. The tag must have 64, 128, 256 ... places, the "
            "cache as many rows of data, and pre_route_count must be a power of 2."
        )

    def plan(indices: np.ndarray, tags: np.ndarray, last: np.ndarray) -> list[np.ndarray]:
        """Return offsets, places to exchange, indices that go and that come, indices without a place, their number."""
        if int(np.ravel(last)[0]) == 1:
            held = np.flatnonzero(tags >= 0)
            none = np.zeros_like(indices)
            return [none - 1, held.astype(indices.dtype), tags[held], tags[held], none, np.zeros([1], indices.dtype)]
        with _lock:
            return _plan_exchange(indices, tags, getattr(tag, _LAST_USE), pre_route_count, sets, size)

    if not hasattr(tag, _LAST_USE):
        setattr(tag, _LAST_USE, np.zeros(places, np.int64))
    with tf.name_scope(name or "lru_cache_v2"):
        indices = tf.convert_to_tensor(index_list, tag.dtype.base_dtype)
        kind = indices.dtype
        offsets, changed, out, come, missing, number = numpy_function(
            plan, [indices, tag.read_value(), is_last_call], [kind] * 6
        )
        for result, shape in ((offsets, indices.shape), (missing, indices.shape), (number, [1])):
            result.set_shape(shape)
        for part in (changed, out, come):
            part.set_shape([None])
        cells = changed[:, None] * size + tf.range(size, dtype=kind)
        rows, wanted = tf.gather(cache.read_value(), cells), tf.gather(data.read_value(), come)
        known = out >= 0
        with _run_after(rows, wanted):
            done = [
                scatter_update(data, tf.boolean_mask(out, known), tf.boolean_mask(rows, known)),
                scatter_update(cache, cells, tf.compat.v2.where(tf.equal(out, come)[:, None], rows, wanted)),
                scatter_update(tag, changed, come),
            ]
        with _run_after(*done):
            values = [data.read_value(), cache.read_value(), tag.read_value()]
            return [tf.identity(tensor) for tensor in (*values, offsets, missing, number)]


def _plan_exchange(
    indices: np.ndarray, tags: np.ndarray, last_use: np.ndarray, routes: int, sets: int, size: int
) -> list[np.ndarray]:
    place_of = {index: place for place, index in enumerate(tags.tolist()) if index >= 0}
    offsets = np.array([place_of.get(index, -1) for index in indices.tolist()], indices.dtype)
    now = int(last_use.max()) + 1
    last_use[offsets[offsets >= 0]] = now
    changed: list[int] = []
    come: list[int] = []
    missing: list[int] = []
    free: dict[int, list[int]] = {}  # places of each set, the first to give way last
    for index in dict.fromkeys(indices[offsets < 0].tolist()):
        own = index // routes % sets
        if own not in free:
            ways = np.arange(own * _WAYS, (own + 1) * _WAYS)
            order = np.lexsort([ways, np.where(tags[ways] < 0, -1, last_use[ways])])
            free[own] = [place for place in ways[order[::-1]].tolist() if last_use[place] < now]
        if free[own]:
            changed.append(free[own].pop())
            come.append(index)
        else:
            missing.append(index)
    last_use[changed] = now
    rest = np.zeros_like(indices)
    rest[: len(missing)] = missing
    offsets = np.where(offsets < 0, offsets, offsets * size)
    places = np.array(changed, indices.dtype)
    return [
        offsets,
        places,
        tags[changed],
        np.array(come, indices.dtype),
        rest,
        np.array([len(missing)], indices.dtype),
    ]


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _run_after(*tensors: Tensor | None) -> ContextManager[None]:
    return tf.control_dependencies([tensor for tensor in tensors if tensor is not None])
