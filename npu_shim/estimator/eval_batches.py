"""The batches of an evaluation: no example is dropped silently, and padding is never counted."""

from __future__ import annotations

from typing import Sequence

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_api, tf_data
from npu_shim._tensorflow.types import Dataset, EstimatorSpec, Operation, Structure, Tensor
from npu_shim.data.batching import find_batching_steps, has_dynamic_batch
from npu_shim.data.padding import MASK, mask_name_of_pipeline, pad_last_batch
from npu_shim.data.remainder import Remainder, count_remainder
from npu_shim.data.static_batch import enforce_static_batch
from npu_shim.estimator.row_graph import is_computed_from

tf = tf_api.tf

MODES = ("keep", "pad", "drop")
_COLLECTION = "npu_shim/mask_feature"


def evaluation_dataset(dataset: Dataset, mode: str, log_cost: bool) -> Dataset:
    """Return the dataset that an evaluation reads.

    Args:
        dataset: a tf.data.Dataset from an input_fn.
        mode: 'keep' does not change it, 'pad' pads the last batch and adds the
            mask to the features, 'drop' drops the last batch.
        log_cost: True to log that the last partial batch costs a recompilation.
    Raises:
        ValueError: if the mode is 'pad' and the features are not a dict; or as in pad_last_batch.
    """
    if has_dynamic_batch(dataset):
        if mode == "drop":
            dataset = enforce_static_batch(dataset)
        elif mode == "pad":
            dataset = _pad_last_batch_with_mask(dataset)
        elif log_cost:
            _log_partial_batch_cost(dataset)
    name = mask_name_of_pipeline(dataset)
    if name:
        tf_api.v1.add_to_collection(_COLLECTION, name)
    return dataset


def _pad_last_batch_with_mask(dataset: Dataset) -> Dataset:
    structure = tf_data.element_structure(dataset)[0]
    features = structure[0] if isinstance(structure, tuple) else structure
    if not isinstance(features, dict):
        raise ValueError(
            f"eval_batches='pad' adds the feature {MASK!r}, but the features of the evaluation are not a dict. "
            "Return a dict such as {'x': x} from the input_fn, or use eval_batches='keep'."
        )
    return pad_last_batch(dataset)


def _log_partial_batch_cost(dataset: Dataset) -> None:
    if host_device.is_npu():  # the op that counts examples would run there, and change the seeds of later ops
        batching = find_batching_steps(dataset)
        counted = Remainder(batching[0].size if batching else None, None, None, None)
    else:
        counted = count_remainder(dataset)
    if counted.left_over == 0:
        return
    if counted.batch_size is None:
        fact = "the batch size of the evaluation is unknown, so the NPU recompiles the graph for each new size"
    elif counted.left_over is None:
        fact = (
            f"the last batch of the evaluation may have fewer than {counted.batch_size:,} rows, for which the NPU "
            "recompiles the graph"
        )
    else:
        fact = (
            f"the last batch of the evaluation has {counted.left_over:,} of {counted.batch_size:,} rows "
            f"({counted.examples:,} examples), for which the NPU recompiles the graph"
        )
    tf_api.logging.info(
        "npu_shim: %s. No example is lost. For one shape, use eval_batches='pad', or "
        "npu_shim.data.pad_last_batch in the input_fn.",
        fact,
    )


def mask_feature_of_graph(features: Structure) -> Tensor | None:
    """Return the mask that pad_last_batch added to the features in the default graph, None if there is none."""
    names = tf_api.v1.get_collection(_COLLECTION)
    return features.get(names[-1]) if names and isinstance(features, dict) else None


def raise_if_mask_is_unused(spec: EstimatorSpec, mask: Tensor, inputs: Sequence[object]) -> None:
    """Raise an error for an evaluation that counts rows of padding.

    Args:
        spec: the result of the model_fn.
        mask: the mask's tensor.
        inputs: the tensors of features and labels.
    Raises:
        ValueError: if the loss or a metric is computed from the input without the mask.
    """
    rows = [t for t in inputs if isinstance(t, tf.Tensor) and t is not mask]
    computed = {"the loss": [spec.loss]}
    for name, metric in (spec.eval_metric_ops or {}).items():
        computed[f"metric {name!r}"] = _update_ops_of(metric)
    wrong = [
        name
        for name, tensors in computed.items()
        if is_computed_from(tensors, rows) and not is_computed_from(tensors, [mask])
    ]
    if wrong:
        raise ValueError(
            f"The last batch of this evaluation is padded, but {', '.join(wrong)} would count the padding. "
            f"Pass the mask as weights=features[{tf_api.v1.get_collection(_COLLECTION)[-1]!r}], as in "
            "tf.metrics.accuracy(labels, classes, weights=...), or do not pad."
        )


def _update_ops_of(metric: Structure) -> list[Tensor | Operation]:
    if isinstance(metric, (tuple, list)):
        return [one for one in metric if isinstance(one, (tf.Tensor, tf.Operation))]
    return list(metric.updates)
