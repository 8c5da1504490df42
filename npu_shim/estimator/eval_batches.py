"""The batches of an evaluation: no example is lost in silence, and padding is never counted."""

from __future__ import annotations

from typing import Any, Sequence

from npu_shim import _tf, _tf_data
from npu_shim.data.batching import has_dynamic_batch
from npu_shim.data.padding import MASK, mask_of, pad_last_batch
from npu_shim.data.remainder import count_remainder
from npu_shim.data.static_batch import enforce_static_batch
from npu_shim.estimator.row_graph import depends

tf = _tf.tf

HOW = ("keep", "pad", "drop")
_COLLECTION = "npu_shim/mask_feature"


def evaluation_input(dataset: Any, how: str, tell: bool) -> Any:
    """The dataset that an evaluation reads.

    Args:
        dataset: a tf.data.Dataset from an input_fn.
        how: 'keep' leaves it as it is, 'pad' pads the last batch and adds the
            mask to the features, 'drop' drops the last batch.
        tell: whether to say what a smaller last batch costs.
    Raises:
        ValueError: 'pad', and the features are no dict; or as in pad_last_batch.
    """
    if has_dynamic_batch(dataset):
        if how == "drop":
            dataset = enforce_static_batch(dataset)
        elif how == "pad":
            dataset = _with_mask_feature(dataset)
        elif tell:
            _say_what_it_costs(dataset)
    name = mask_of(dataset)
    if name:
        _tf.v1.add_to_collection(_COLLECTION, name)
    return dataset


def _with_mask_feature(dataset: Any) -> Any:
    structure = _tf_data.element_structure(dataset)[0]
    features = structure[0] if isinstance(structure, tuple) else structure
    if not isinstance(features, dict):
        raise ValueError(
            f"eval_batches='pad' adds the feature {MASK!r}, but the features of the evaluation are no dict: let the "
            "input_fn give a dict, as in {'x': x}, or use eval_batches='keep'."
        )
    return pad_last_batch(dataset)


def _say_what_it_costs(dataset: Any) -> None:
    counted = count_remainder(dataset)
    if counted.left_over == 0:
        return
    if counted.batch_size is None:
        said = "The batches of the evaluation have no known size, and a card compiles the graph for each one it meets"
    elif counted.left_over is None:
        said = (
            f"The last batch of the evaluation may have fewer than {counted.batch_size:,} rows, for which a card "
            "compiles the graph once more"
        )
    else:
        said = (
            f"The last batch of the evaluation has {counted.left_over:,} of {counted.batch_size:,} rows "
            f"({counted.examples:,} examples), for which a card compiles the graph once more"
        )
    _tf.logging.info(
        "npu_shim: %s. No example is lost. eval_batches='pad', or npu_shim.data.pad_last_batch in the "
        "input_fn, gives all batches one shape.",
        said,
    )


def mask_feature(features: Any) -> Any:
    """The mask among the features of the default graph, where pad_last_batch put it there; else None."""
    names = _tf.v1.get_collection(_COLLECTION)
    return features.get(names[-1]) if names and isinstance(features, dict) else None


def check_mask_is_used(spec: Any, mask: Any, inputs: Sequence[Any]) -> None:
    """Refuses an evaluation that counts rows of padding.

    Args:
        spec: what the model_fn returned.
        mask: the mask's tensor.
        inputs: the tensors of features and labels.
    Raises:
        ValueError: the loss or a metric is computed from the input without the mask.
    """
    rows = [t for t in inputs if isinstance(t, tf.Tensor) and t is not mask]
    computed = {"the loss": [spec.loss]}
    for name, metric in (spec.eval_metric_ops or {}).items():
        computed[f"metric {name!r}"] = _updates_of(metric)
    wrong = [name for name, tensors in computed.items() if depends(tensors, rows) and not depends(tensors, [mask])]
    if wrong:
        raise ValueError(
            f"The last batch of this evaluation is padded, but {', '.join(wrong)} would count the rows of padding. "
            f"Give them the mask: weights=features[{_tf.v1.get_collection(_COLLECTION)[-1]!r}], as in "
            "tf.metrics.accuracy(labels, classes, weights=...), or do not pad."
        )


def _updates_of(metric: Any) -> list[Any]:
    if isinstance(metric, (tuple, list)):
        return [one for one in metric if isinstance(one, (tf.Tensor, tf.Operation))]
    return list(metric.updates)
