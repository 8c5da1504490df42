"""A static batch dimension that loses no example: the last batch is padded to the full size.

For evaluation and prediction, where every example counts. The rows that are
added repeat the last real one, so that a model meets no value that it does not
know (a length of 0, an empty text); a mask tells the real rows from them.
"""

from __future__ import annotations

from typing import Any

from npu_shim import _tf, _tf_data
from npu_shim.data.batching import (
    as_element,
    check_dataset,
    check_sizes,
    find_batching,
    open_sizes,
    with_batch_dimension,
)

tf = _tf.tf

MASK = "is_real_example"


def pad_last_batch(dataset: Any, batch_size: int | None = None, mask: str = MASK) -> Any:
    """Returns the dataset with a static batch dimension; smaller batches are padded, and a mask tells the real rows.

    The mask is a float32 tensor of shape [batch_size]: 1 for a real row, 0 for
    one that only fills the batch and repeats the last real row. It is put

    * into the dict of features, as ``features[mask]``, where elements are a dict
      or a tuple that begins with one, as ``(features, labels)``;
    * behind the other components where they are not: ``x`` becomes ``(x, mask)``
      and ``(x, y)`` becomes ``(x, y, mask)``, which Keras takes for sample weights.

    Metrics and losses that are given the mask as weights do not count the rows
    that were added. In the model_fn of an Estimator::

        real = features["is_real_example"]
        loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits, weights=real)
        accuracy = tf.compat.v1.metrics.accuracy(labels, classes, weights=real)

    NPUEstimator refuses an evaluation that leaves the mask out, and pads the
    batches of ``predict`` by itself. With a session::

        dataset = npu_shim.data.pad_last_batch(dataset.batch(100))
        x, y, real = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
        ...
        rows, keep = sess.run([predictions, real])
        results.extend(rows[keep > 0])

    Works on ``batch``, ``padded_batch`` and ``map_and_batch``, with what may
    follow them as in enforce_static_batch, and on components of every dtype.
    A component whose first dimension is known already stays as it is. The same
    on the card and on the CPU.

    Args:
        dataset: a tf.data.Dataset (of TF 1 or 2) whose elements are batches.
        batch_size: rows of a full batch; only needed where the pipeline does not
            show it (batches made in a generator or in ``interleave``).
        mask: the name of the mask among the features.
    Returns:
        A tf.data.Dataset of the same batches, in the same order.
    Raises:
        TypeError: dataset is no tf.data.Dataset, or one of its components is not a dense tensor of known rank.
        ValueError: the batch size is not known, is not positive, or the
            features have an entry with the mask's name already.
        tf.errors.InvalidArgumentError: while it runs, when a ``map`` after
            ``batch`` turned out to change the batch dimension.
    """
    check_dataset(dataset)
    shapes, _, _ = _tf_data.element_structure(dataset)
    features = shapes[0] if isinstance(shapes, tuple) else shapes
    if isinstance(features, dict) and mask in features:
        raise ValueError(
            f"mask={mask!r} is not allowed: the features have an entry of this name already. Give another "
            "name for the mask, or use theirs if it is padded already."
        )

    @tf.autograph.experimental.do_not_convert
    def put_mask(element: Any, real: Any) -> Any:
        if isinstance(element, dict):
            return dict(element, **{mask: real})
        if isinstance(element, tuple) and isinstance(element[0], dict):
            return (dict(element[0], **{mask: real}),) + element[1:]
        return (element if isinstance(element, tuple) else (element,)) + (real,)

    padded = padded_with_mask(dataset, batch_size).map(put_mask)
    _tf_data.unwrap_dataset(padded).npu_shim_mask = mask
    return padded


def mask_of(dataset: Any) -> str | None:
    """The name under which pad_last_batch put the mask, anywhere in a pipeline; None where it did not."""
    real = _tf_data.unwrap_dataset(dataset)
    if hasattr(real, "npu_shim_mask"):
        return real.npu_shim_mask
    found = [mask_of(one) for one in _tf_data.dataset_inputs(real)]
    return next((name for name in found if name), None)


def padded_with_mask(dataset: Any, batch_size: int | None = None) -> Any:
    """The dataset of pairs (element, mask); arguments and errors as in pad_last_batch."""
    _check_components(dataset)
    size = _size_of(dataset, batch_size)

    @tf.autograph.experimental.do_not_convert
    def pad(*element: Any) -> tuple[Any, Any]:
        whole = as_element(dataset, element)
        counts = open_sizes(element)
        if not counts:
            return whole, tf.ones([size])
        with tf.control_dependencies([check_sizes(counts, size, smallest=1)]):
            count = tf.identity(counts[0])
        rows = tf.minimum(tf.range(size), count - 1)
        filled = [_gathered(t, rows, count, size) for t in tf.nest.flatten(whole)]
        whole = with_batch_dimension(tf.nest.pack_sequence_as(whole, filled), size)
        return whole, tf.cast(tf.range(size) < count, tf.float32)

    return dataset.map(pad)


def _gathered(tensor: Any, rows: Any, count: Any, size: int) -> Any:
    """The rows of a tensor whose first dimension is open; a full batch is not copied."""
    if not tensor.shape.rank or tf.compat.dimension_value(tensor.shape[0]) is not None:
        return tensor
    return tf.cond(tf.equal(count, size), lambda: tf.identity(tensor), lambda: tf.gather(tensor, rows))


def _check_components(dataset: Any) -> None:
    """Raises TypeError for a component that cannot be padded."""
    shapes, _, classes = _tf_data.element_structure(dataset)
    wrong: list[str] = []
    for shape, kind in zip(tf.nest.flatten(shapes), tf.nest.flatten(classes)):
        if kind is not tf.Tensor:
            wrong.append(getattr(kind, "__name__", type(kind).__name__))
        elif shape.rank is None:
            wrong.append("a tensor of unknown rank")
    if wrong:
        raise TypeError(
            f"pad_last_batch pads dense tensors, but the elements hold {', '.join(wrong)}. Make them dense in a map "
            "before: tf.sparse.to_dense(x), x.to_tensor(), x.set_shape([None, ...])."
        )


def _size_of(dataset: Any, batch_size: int | None) -> int:
    if batch_size is not None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"batch_size={batch_size!r} is not allowed: it must be an int of at least 1.")
        return batch_size
    batching = find_batching(dataset)
    if batching is not None:
        return batching[0].size
    known = {tf.compat.dimension_value(s[0]) for s in tf.nest.flatten(_tf_data.element_structure(dataset)[0]) if s.rank}
    if len(known) == 1 and None not in known:
        return known.pop()
    raise ValueError(
        f"The batch size of the dataset cannot be found ({_tf_data.dataset_kind(dataset)}). Give it: "
        "pad_last_batch(dataset, batch_size=100)."
    )
