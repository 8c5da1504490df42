"""Prediction in batches of one shape: the last batch is padded, and only real rows are yielded."""

from __future__ import annotations

from typing import Callable, Iterator

from npu_shim._tensorflow import tf_api, tf_data, types
from npu_shim.data.batching import has_dynamic_batch
from npu_shim.data.padding import pad_with_mask
from npu_shim.estimator.row_graph import is_computed_from, row_mixing_op_name

tf = tf_api.tf

_COLLECTION = "npu_shim/real_rows"


class RowsUnknown(Exception):
    """Raised if rows of a prediction cannot be separated from padding. The message gives the reason."""


class RealRows(tf_api.SessionRunHook):
    """Pad the input of one predict call, and remove the padding from its results.

    Args:
        single: True if the predictions are yielded row by row.
    """

    def __init__(self, single: bool) -> None:
        self._single = single
        self._size = 0
        self._count: types.Tensor | None = None  # number of real rows in the batch
        self._features: list[types.Tensor] = []
        self._cut_names: list[str | None] = []
        self._real = 0

    @staticmethod
    def of_default_graph() -> RealRows | None:
        """Return the object that padded the input of the default graph, None if there is none."""
        collected = tf_api.v1.get_collection(_COLLECTION)
        return collected[-1] if collected else None

    def pad_and_count_rows(self, dataset: types.Dataset) -> types.Dataset:
        """Return the features of an input_fn's dataset and the number of real rows, in batches of full size.

        The argument is returned unchanged if it is not a dataset, has a static batch dimension or cannot be padded.
        """
        if not isinstance(dataset, (tf.compat.v2.data.Dataset, tf_api.v1.data.Dataset)) or not has_dynamic_batch(
            dataset
        ):
            return dataset
        structure = tf_data.element_structure(dataset)[0]
        if isinstance(structure, tuple):
            if len(structure) != 2:
                return dataset  # Estimator raises its own error
            dataset = dataset.map(lambda features, labels: features)
        try:
            pairs = pad_with_mask(dataset)
        except (TypeError, ValueError) as error:
            tf_api.logging.info(
                "npu_shim: predict does not pad its last batch, for which the NPU recompiles the graph: %s",
                error,
            )
            return dataset
        self._size = tf.compat.dimension_value(tf_data.element_structure(pairs)[0][1][0])
        tf_api.v1.add_to_collection(_COLLECTION, self)
        return pairs.map(lambda features, mask: {"features": features, "real": tf.cast(tf.reduce_sum(mask), tf.int32)})

    def features_for_model(self, features: dict[str, types.Structure]) -> types.Structure:
        """Return the features for the model_fn."""
        self._count = features["real"]
        self._features = [t for t in tf.nest.flatten(features["features"]) if isinstance(t, tf.Tensor)]
        return features["features"]

    def find_row_predictions(self, predictions: types.Tensor | dict[str, types.Tensor]) -> None:
        """Find the predictions that have a row for each example.

        Args:
            predictions: a tensor, or a dict of tensors.
        Raises:
            RowsUnknown: if padding would change the results.
        """
        by_name = predictions if isinstance(predictions, dict) else {None: predictions}
        if self._size == 1:
            return  # a batch of one row is never padded
        for name, tensor in by_name.items():
            label = "the prediction" if name is None else f"prediction {name!r}"
            rows = tf.compat.dimension_value(tensor.shape[0]) if tensor.shape.rank else None
            if self._single or is_computed_from([tensor], self._features):
                if rows != self._size:
                    raise RowsUnknown(
                        f"{label} has the shape {tensor.shape}, not a row for each example of the batch of {self._size}"
                    )
                self._cut_names.append(name)
            elif rows == self._size:
                raise RowsUnknown(f"{label} has as many rows as a batch but does not depend on the features")
        mixing = row_mixing_op_name(by_name.values(), self._features, self._size)
        if mixing:
            raise RowsUnknown(f"the operation {mixing!r} computes across the rows of a batch")

    def before_run(self, run_context: types.SessionRunContext) -> types.SessionRunArgs | None:
        """Fetch the number of real rows."""
        return None if self._count is None else tf_api.v1.train.SessionRunArgs(self._count)

    def after_run(self, run_context: types.SessionRunContext, run_values: types.SessionRunValues) -> None:
        """Keep the number of real rows for the values of the same run."""
        if self._count is not None:
            self._real = int(run_values.results)

    def remove_padding(self, values: types.Structure) -> types.Structure:
        """Return the values of one run without the padding."""
        if self._real == self._size:
            return values
        if not isinstance(values, dict):
            return values[: self._real] if self._cut_names else values
        return {name: value[: self._real] if name in self._cut_names else value for name, value in values.items()}


def iterate_rows(values: types.Structure, length: Callable[[dict[str, types.Value]], int]) -> Iterator[types.Structure]:
    """Yield the values of one run row by row.

    Args:
        values: an array, or a dict of arrays.
        length: returns the number of rows that all arrays of a dict have.
    """
    if not isinstance(values, dict):
        yield from values
        return
    for index in range(length(values)):
        yield {name: value[index] for name, value in values.items()}
