"""Batches of one shape in an Estimator, on the NPU and on the CPU alike."""

from __future__ import annotations

import contextlib
from typing import Iterator, Sequence

from npu_shim._tensorflow import tf_api, tf_estimator
from npu_shim._tensorflow.types import (
    Dataset,
    EstimatorClass,
    EstimatorSpec,
    InputContext,
    InputFn,
    RunConfig,
    SessionRunHook,
    Structure,
    Tensor,
)
from npu_shim.data.dropped_examples import DroppedExamplesHook
from npu_shim.data.static_batch import enforce_static_batch, warn_of_dynamic_batch
from npu_shim.estimator import eval_batches as evaluation
from npu_shim.estimator.arguments import check_choice
from npu_shim.estimator.predict_batches import RealRows, RowsUnknown, iterate_rows

_TRAIN, _EVAL, _PREDICT = "train", "eval", "infer"  # tf.estimator.ModeKeys


_Estimator: EstimatorClass = object  # for type checkers; the class after this one


class StaticBatches(_Estimator):
    """A base class before a class of Estimators; it gives a tf.data.Dataset of the input_fn a static batch dimension.

    Without a dynamic batch dimension nothing changes.

    Args:
        eval_batches, predict_batches: as for NPUEstimator.
        **kwargs: arguments of the class of Estimators.
    Raises:
        ValueError: if eval_batches or predict_batches has another value.
    """

    def __init__(self, *, eval_batches: str, predict_batches: str, **kwargs: object) -> None:
        check_choice("eval_batches", eval_batches, evaluation.MODES)
        check_choice("predict_batches", predict_batches, ("pad", "keep"))
        self._eval_batches = eval_batches
        self._predict_batches = predict_batches
        self._logged_eval_cost = False
        super().__init__(**kwargs)

    def _assert_members_are_not_overridden(self) -> None:
        """Allow this class to override members of Estimator."""

    def _call_input_fn(self, input_fn: InputFn, mode: str, input_context: InputContext | None = None) -> Structure:
        if mode == _TRAIN:
            with tf_estimator.change_iterator_datasets(enforce_static_batch):
                result = super()._call_input_fn(input_fn, mode, input_context)
        else:
            result = super()._call_input_fn(input_fn, mode, input_context)
        if not isinstance(result, (tf_api.tf.data.Dataset, tf_api.v1.data.Dataset)):
            if mode == _TRAIN:
                warn_of_dynamic_batch(result)
            return result
        if mode == _TRAIN:
            return enforce_static_batch(result)
        if mode == _EVAL:
            log_cost, self._logged_eval_cost = not self._logged_eval_cost, True
            return evaluation.evaluation_dataset(result, self._eval_batches, log_cost)
        return result

    def predict(
        self,
        input_fn: InputFn,
        predict_keys: str | Sequence[str] | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Structure]:
        """Yield the predictions of real examples; see tf.estimator.Estimator.predict.

        Args:
            input_fn, predict_keys, hooks, checkpoint_path, yield_single_examples: as for Estimator.predict.
        Yields:
            The same values as Estimator.predict.
        """
        if self._predict_batches == "pad":
            rows = RealRows(yield_single_examples)

            def padded_input() -> Dataset:
                return rows.pad_and_count_rows(self._call_input_fn(input_fn, _PREDICT))

            try:
                with contextlib.closing(
                    super().predict(
                        padded_input,
                        predict_keys,
                        list(hooks or ()) + [rows],
                        checkpoint_path,
                        yield_single_examples=False,
                    )
                ) as batches:
                    for values in map(rows.remove_padding, batches):
                        if yield_single_examples:
                            yield from iterate_rows(values, self._extract_batch_length)
                        else:
                            yield values
                return
            except RowsUnknown as error:
                tf_api.logging.info(
                    "npu_shim: predict does not pad its last batch, for which the NPU recompiles the graph: %s.",
                    error,
                )
        yield from super().predict(input_fn, predict_keys, hooks, checkpoint_path, yield_single_examples)

    def _extract_keys(
        self, predictions: Tensor | dict[str, Tensor], predict_keys: str | Sequence[str] | None
    ) -> Tensor | dict[str, Tensor]:
        chosen = super()._extract_keys(predictions, predict_keys)
        rows = RealRows.of_default_graph()
        if rows is not None:
            rows.find_row_predictions(chosen)
        return chosen

    def _call_model_fn(self, features: Structure, labels: Structure, mode: str, config: RunConfig) -> EstimatorSpec:
        rows = RealRows.of_default_graph()
        if rows is not None:
            features = rows.features_for_model(features)
        mask = evaluation.mask_feature_of_graph(features) if mode == _EVAL else None
        # taken before the model_fn removes entries
        inputs = [] if mask is None else tf_api.tf.nest.flatten([features, labels], expand_composites=True)
        spec = super()._call_model_fn(features, labels, mode, config)
        if mask is not None:
            evaluation.raise_if_mask_is_unused(spec, mask, inputs)
        if mode == _TRAIN:
            return spec._replace(training_hooks=(*spec.training_hooks, DroppedExamplesHook()))
        return spec
