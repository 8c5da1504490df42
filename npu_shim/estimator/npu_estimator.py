"""NPUEstimator: an Estimator whose sessions carry the NPU options."""

from __future__ import annotations

from typing import Sequence

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_api, tf_estimator
from npu_shim._tensorflow.types import (
    CheckpointSaverListener,
    EstimatorModule,
    InputFn,
    ModelFn,
    RunConfig,
    SessionRunHook,
    WarmStartSettings,
)
from npu_shim.config.placeholder import make_placeholder_class
from npu_shim.estimator import step_intervals
from npu_shim.estimator.arguments import wrap_to_refuse_tpu_arguments

_API: EstimatorModule = tf_api.estimator_namespace()
_DOC = "An Estimator that trains on the NPU, or on the CPU if there is no NPU."


if _API is not None:
    from npu_shim.estimator.static_batches import StaticBatches

    if host_device.is_npu():
        from npu_shim.estimator.card_estimator import CardEstimator as _Base
    else:
        from npu_shim.estimator.host_estimator import HostEstimator as _Base  # type: ignore[assignment]

    class NPUEstimator(StaticBatches, _Base):
        __doc__ = (
            _DOC
            + """

        It supports everything of tf.estimator.Estimator: train, evaluate,
        predict, export_saved_model, train_and_evaluate, warm start, hooks.

        A tf.data.Dataset from the input_fn gets a static batch dimension if that
        is harmless, on the NPU and on the CPU alike:

        * Training drops the last partial batch and logs its size
          (npu_shim.data.enforce_static_batch).
        * Evaluation keeps the last partial batch and logs its cost on the NPU.
        * Prediction pads the last batch and yields only the real rows. If rows
          depend on each other, or a prediction does not have one row for each
          example, it does not pad, and logs that.

        ``iterations_per_loop=N`` makes N training steps for each run. Hooks run
        every N steps, with the values of the last step. If the number of steps
        is not a multiple of N, training continues to the end of the last run.

        Args:
            model_fn: as for Estimator; may return an NPUEstimatorSpec.
            model_dir: directory of checkpoints; the run config's when None.
            config: an NPURunConfig, or None for its defaults.
            params: hyperparameters for model_fn.
            job_start_file: a JSON file instead of JOB_ID; one process needs neither.
            warm_start_from: a checkpoint, SavedModel or WarmStartSettings to start from.
            eval_batches: handling of the last partial batch in evaluation: 'keep';
                'pad', with the feature ``is_real_example``, which loss and metrics
                must take as weights (see npu_shim.data.pad_last_batch); or 'drop'.
            predict_batches: the same in prediction: 'pad' or 'keep'.
        Raises:
            ValueError: if config is a plain RunConfig, job_start_file cannot be
                read, or eval_batches or predict_batches has another value.
        """
        )

        @wrap_to_refuse_tpu_arguments
        def __init__(
            self,
            model_fn: ModelFn | None = None,
            model_dir: str | None = None,
            config: RunConfig | None = None,
            params: dict[str, object] | None = None,
            job_start_file: str = "",
            warm_start_from: str | WarmStartSettings | None = None,
            *,
            eval_batches: str = "keep",
            predict_batches: str = "pad",
        ) -> None:
            host_device.require_device()
            super().__init__(
                model_fn=model_fn,
                model_dir=model_dir,
                config=config,
                params=params,
                job_start_file=job_start_file,
                warm_start_from=warm_start_from,
                eval_batches=eval_batches,
                predict_batches=predict_batches,
            )

        export_savedmodel = tf_api.v1.estimator.Estimator.export_savedmodel  # hidden in TF 2's Estimator

        def train(
            self,
            input_fn: InputFn,
            hooks: Sequence[SessionRunHook] | None = None,
            steps: int | None = None,
            max_steps: int | None = None,
            saving_listeners: Sequence[CheckpointSaverListener] | None = None,
        ) -> NPUEstimator:
            """Train; see tf.estimator.Estimator.train."""
            iterations = self.config.iterations_per_loop
            if iterations > 1:
                step_intervals.log_intervals(self.config)
                step_intervals.log_overrun(iterations, tf_estimator.saved_step(self.model_dir), steps, max_steps)
            return super().train(input_fn, hooks, steps, max_steps, saving_listeners)

else:
    NPUEstimator = make_placeholder_class("NPUEstimator", _DOC)  # type: ignore[misc,assignment]
