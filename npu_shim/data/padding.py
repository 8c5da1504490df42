"""A static batch dimension without losing examples: the last batch is padded to the full size.

For evaluation and prediction, where every example counts. The added rows
repeat the last real row, so that a model meets no value that it cannot handle
(a length of 0, an empty string). A mask marks the real rows.
"""

from __future__ import annotations

from npu_shim._tensorflow import tf_api, tf_data
from npu_shim._tensorflow.types import Dataset, Structure, Tensor
from npu_shim.data.batching import (
    batch_size_check_op,
    check_dataset,
    dynamic_first_dimensions,
    find_batching_steps,
    map_arguments_as_element,
    with_batch_dimension,
)

tf = tf_api.tf

MASK = "is_real_example"


def pad_last_batch(dataset: Dataset, batch_size: int | None = None, mask: str = MASK) -> Dataset:
    """Return the dataset with a static batch dimension; partial batches are padded, and a mask marks the real rows.

    The mask is a float32 tensor of shape [batch_size]: 1 for a real row, 0 for
    a row of padding, which repeats the last real row. It is added

    * to the dict of features, as ``features[mask]``, if elements are a dict
      or a tuple that begins with one, such as ``(features, labels)``;
    * else after the other components: ``x`` becomes ``(x, mask)`` and ``(x, y)``
      becomes ``(x, y, mask)``, which Keras takes for sample weights.

    Metrics and losses with the mask as weights do not count the padding. In the
    model_fn of an Estimator::

        real = features["is_real_example"]
        loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits, weights=real)
        accuracy = tf.compat.v1.metrics.accuracy(labels, classes, weights=real)

    NPUEstimator raises an error if an evaluation does not use the mask, and
    pads the batches of ``predict`` by itself. With a session::

        dataset = npu_shim.data.pad_last_batch(dataset.batch(100))
        x, y, real = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
        ...
        rows, keep = sess.run([predictions, real])
        results.extend(rows[keep > 0])

    Works on ``batch``, ``padded_batch`` and ``map_and_batch``, followed by the
    same steps as in enforce_static_batch, and on components of every dtype.
    A component with a static first dimension does not change. The result is
    the same on the NPU and the CPU.

    Args:
        dataset: a tf.data.Dataset (of TF 1 or 2) whose elements are batches.
        batch_size: rows of a full batch; only needed if the pipeline does not
            show it (batches from a generator or from ``interleave``).
        mask: the name of the mask among the features.
    Returns:
        A tf.data.Dataset of the same batches, in the same order.
    Raises:
        TypeError: if dataset is not a tf.data.Dataset, or a component is not a dense tensor of known rank.
        ValueError: if the batch size is unknown or not positive, or the
            features already have an entry with the mask's name.
        tf.errors.InvalidArgumentError: at run time, if a ``map`` after
            ``batch`` changes the batch dimension.
    """
    check_dataset(dataset)
    shapes, _, _ = tf_data.element_structure(dataset)
    features = shapes[0] if isinstance(shapes, tuple) else shapes
    if isinstance(features, dict) and mask in features:
        raise ValueError(
            f"mask={mask!r} is not allowed: the features already have an entry of this name. Choose another "
            "name, or use that entry if the dataset is padded already."
        )

    def add_mask(element: Structure, real: Tensor) -> Structure:
        if isinstance(element, dict):
            return dict(element, **{mask: real})
        if isinstance(element, tuple) and isinstance(element[0], dict):
            return (dict(element[0], **{mask: real}),) + element[1:]
        return (element if isinstance(element, tuple) else (element,)) + (real,)

    padded = pad_with_mask(dataset, batch_size).map(add_mask)
    tf_data.unwrap_dataset(padded).npu_shim_mask = mask
    return padded


def mask_name_of_pipeline(dataset: Dataset) -> str | None:
    """Return the name of the mask that pad_last_batch added anywhere in a pipeline, or None."""
    real = tf_data.unwrap_dataset(dataset)
    if hasattr(real, "npu_shim_mask"):
        return real.npu_shim_mask
    masks = [mask_name_of_pipeline(source) for source in tf_data.dataset_inputs(real)]
    return next((name for name in masks if name), None)


def pad_with_mask(dataset: Dataset, batch_size: int | None = None) -> Dataset:
    """Return the dataset of pairs (element, mask); arguments and errors as in pad_last_batch."""
    _check_components(dataset)
    size = _full_batch_size(dataset, batch_size)

    def pad(*element: Structure) -> tuple[Structure, Tensor]:
        whole = map_arguments_as_element(dataset, element)
        counts = dynamic_first_dimensions(element)
        if not counts:
            return whole, tf.ones([size])
        with tf.control_dependencies([batch_size_check_op(counts, size, smallest=1)]):
            count = tf.identity(counts[0])
        rows = tf.minimum(tf.range(size), count - 1)
        filled = [_gather_padded_rows(t, rows, count, size) for t in tf.nest.flatten(whole)]
        whole = with_batch_dimension(tf.nest.pack_sequence_as(whole, filled), size)
        return whole, tf.cast(tf.range(size) < count, tf.float32)

    return dataset.map(pad)


def _gather_padded_rows(tensor: Tensor, rows: Tensor, count: Tensor, size: int) -> Tensor:
    """Return the given rows of a tensor with a dynamic first dimension; a full batch is not copied."""
    if not tensor.shape.rank or tf.compat.dimension_value(tensor.shape[0]) is not None:
        return tensor
    return tf.cond(tf.equal(count, size), lambda: tf.identity(tensor), lambda: tf.gather(tensor, rows))


def _check_components(dataset: Dataset) -> None:
    """Raise TypeError for a component that cannot be padded."""
    shapes, _, classes = tf_data.element_structure(dataset)
    wrong: list[str] = []
    for shape, kind in zip(tf.nest.flatten(shapes), tf.nest.flatten(classes)):
        if kind is not tf.Tensor:
            wrong.append(getattr(kind, "__name__", type(kind).__name__))
        elif shape.rank is None:
            wrong.append("a tensor of unknown rank")
    if wrong:
        raise TypeError(
            f"pad_last_batch pads dense tensors, but the elements hold {', '.join(wrong)}. Make them dense in a map "
            "first: tf.sparse.to_dense(x), x.to_tensor(), x.set_shape([None, ...])."
        )


def _full_batch_size(dataset: Dataset, batch_size: int | None) -> int:
    if batch_size is not None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"batch_size={batch_size!r} is not allowed: it must be an int of at least 1.")
        return batch_size
    batching = find_batching_steps(dataset)
    if batching is not None:
        return batching[0].size
    known = {tf.compat.dimension_value(s[0]) for s in tf.nest.flatten(tf_data.element_structure(dataset)[0]) if s.rank}
    if len(known) == 1 and None not in known:
        return known.pop()
    raise ValueError(
        f"No batch size found in {tf_data.dataset_kind(dataset)}. Pass it: pad_last_batch(dataset, batch_size=100)."
    )
