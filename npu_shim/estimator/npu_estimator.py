"""NPUEstimator: an Estimator whose sessions carry the NPU options."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Iterator, Sequence

from npu_shim import _device, _env, _tf, _tf_estimator
from npu_shim.config.graph_passes import for_this_device
from npu_shim.config.placeholder import needs_estimator
from npu_shim.data.dropped_examples import DroppedExamplesHook
from npu_shim.data.static_batch import enforce_static_batch, warn_dynamic_batch
from npu_shim.distributed.world import world_size
from npu_shim.estimator import eval_batches as evaluation, step_intervals
from npu_shim.estimator.arguments import check_choice, check_job_start_file, npu_run_config, refuse_tpu_arguments
from npu_shim.estimator.hooks import SetIterationsVarHook
from npu_shim.estimator.host_call import HostCallHook
from npu_shim.estimator.predict_batches import RealRows, RowsUnknown, rows_of
from npu_shim.estimator.rank_checkpoints import RankCheckpointSaverHook, rank_event_files, rank_export_folder
from npu_shim.optimizer.iterations_per_loop import ITERATION_OP, IterationsPerLoopHook
from npu_shim.training.broadcasting import NPUBroadcastGlobalVariablesHook

if TYPE_CHECKING:
    from npu_shim._types import (
        Dataset,
        EstimatorSpec,
        InputContext,
        InputFn,
        ModelFn,
        RunConfig,
        SessionRunHook,
        Structure,
        Tensor,
        WarmStartSettings,
    )

_API: Any = _tf.estimator()
_DOC = "An Estimator that trains on the NPU, or on the CPU if there is no NPU."


if _API is not None:

    class NPUEstimator(_API.Estimator):
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

        @refuse_tpu_arguments
        def __init__(
            self,
            model_fn: ModelFn | None = None,
            model_dir: str | None = None,
            config: RunConfig | None = None,
            params: dict[str, Any] | None = None,
            job_start_file: str = "",
            warm_start_from: str | WarmStartSettings | None = None,
            *,
            eval_batches: str = "keep",
            predict_batches: str = "pad",
        ) -> None:
            check_choice("eval_batches", eval_batches, evaluation.MODES)
            check_choice("predict_batches", predict_batches, ("pad", "keep"))
            self._eval_batches = eval_batches
            self._predict_batches = predict_batches
            self._logged_eval_cost = False
            self._rank_saver: RankCheckpointSaverHook | None = None
            self._saves_itself = False
            _device.resolve()
            if job_start_file:
                check_job_start_file(job_start_file)
            super().__init__(
                model_fn=model_fn,
                model_dir=model_dir,
                config=npu_run_config(config),
                params=params,
                warm_start_from=warm_start_from,
            )
            self._session_config = for_this_device(self.config.session_config)  # that config is for the NPU

        export_savedmodel = _tf.v1.estimator.Estimator.export_savedmodel  # hidden in TF 2's Estimator

        def train(
            self,
            input_fn: InputFn,
            hooks: Sequence[SessionRunHook] | None = None,
            steps: int | None = None,
            max_steps: int | None = None,
            saving_listeners: Sequence[Any] | None = None,
        ) -> NPUEstimator:
            """Train; see tf.estimator.Estimator.train."""
            iterations = self.config.iterations_per_loop
            if iterations > 1:
                step_intervals.log_intervals(self.config)
                step_intervals.log_overrun(iterations, _tf_estimator.saved_step(self.model_dir), steps, max_steps)
            self._saves_itself = any(isinstance(hook, _tf.v1.train.CheckpointSaverHook) for hook in hooks or ())
            with rank_event_files(self.model_dir):
                return super().train(input_fn, hooks, steps, max_steps, saving_listeners)

        def evaluate(
            self,
            input_fn: InputFn,
            steps: int | None = None,
            hooks: Sequence[SessionRunHook] | None = None,
            checkpoint_path: str | None = None,
            name: str | None = None,
        ) -> dict[str, Any]:
            """Evaluate; see tf.estimator.Estimator.evaluate. Each rank evaluates all data."""
            with rank_event_files(self.eval_dir(name)):
                return super().evaluate(input_fn, steps, hooks, checkpoint_path, name)

        def _export_all_saved_models(self, export_dir_base: str, *args: Any, **kwargs: Any) -> bytes:
            base = (
                rank_export_folder(export_dir_base)
                if self._rank_saver and not self._rank_saver.writes
                else export_dir_base
            )
            return super()._export_all_saved_models(base, *args, **kwargs)

        def _assert_members_are_not_overridden(self) -> None:
            """Allow this subclass to override members of Estimator."""

        def _call_input_fn(self, input_fn: InputFn, mode: str, input_context: InputContext | None = None) -> Structure:
            if mode == _API.ModeKeys.TRAIN:
                with _tf_estimator.changed_iterators(enforce_static_batch):
                    result = super()._call_input_fn(input_fn, mode, input_context)
            else:
                result = super()._call_input_fn(input_fn, mode, input_context)
            if not isinstance(result, (_tf.tf.data.Dataset, _tf.v1.data.Dataset)):
                if mode == _API.ModeKeys.TRAIN:
                    warn_dynamic_batch(result)
                return result
            if mode == _API.ModeKeys.TRAIN:
                return enforce_static_batch(result)
            if mode == _API.ModeKeys.EVAL:
                log_cost, self._logged_eval_cost = not self._logged_eval_cost, True
                return evaluation.evaluation_input(result, self._eval_batches, log_cost)
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
                    return rows.padded(self._call_input_fn(input_fn, _API.ModeKeys.PREDICT))

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
                        for values in map(rows.cut, batches):
                            if yield_single_examples:
                                yield from rows_of(values, self._extract_batch_length)
                            else:
                                yield values
                    return
                except RowsUnknown as error:
                    _tf.logging.info(
                        "npu_shim: predict does not pad its last batch, for which the NPU recompiles the graph: %s.",
                        error,
                    )
            yield from super().predict(input_fn, predict_keys, hooks, checkpoint_path, yield_single_examples)

        def _extract_keys(
            self, predictions: Tensor | dict[str, Tensor], predict_keys: str | Sequence[str] | None
        ) -> Tensor | dict[str, Tensor]:
            chosen = super()._extract_keys(predictions, predict_keys)
            rows = RealRows.of_graph()
            if rows is not None:
                rows.check(chosen)
            return chosen

        def _call_model_fn(self, features: Structure, labels: Structure, mode: str, config: RunConfig) -> EstimatorSpec:
            rows = RealRows.of_graph()
            if rows is not None:
                features = rows.take(features)
            mask = evaluation.mask_feature(features) if mode == _API.ModeKeys.EVAL else None
            # taken before the model_fn removes entries
            inputs = [] if mask is None else _tf.tf.nest.flatten([features, labels], expand_composites=True)
            spec = super()._call_model_fn(features, labels, mode, config)
            if mask is not None:
                evaluation.check_mask_is_used(spec, mask, inputs)
            if mode == _API.ModeKeys.TRAIN:
                if self.config.iterations_per_loop > 1:
                    spec = _looped(spec, self.config.iterations_per_loop)
                return spec._replace(training_hooks=tuple(spec.training_hooks) + tuple(self._training_hooks(spec)))
            if mode == _API.ModeKeys.EVAL:
                return spec._replace(evaluation_hooks=tuple(spec.evaluation_hooks) + tuple(_host_hooks(spec)))
            return spec

        def _training_hooks(self, spec: EstimatorSpec) -> list[SessionRunHook]:
            hooks = _host_hooks(spec) + [DroppedExamplesHook()]
            if world_size() > 1 and not self.config.horovod_mode:
                hooks.append(NPUBroadcastGlobalVariablesHook(0, _env.read().rank_id))
                if not self._saves_itself and not any(
                    isinstance(h, _tf.v1.train.CheckpointSaverHook) for h in spec.training_hooks
                ):
                    self._rank_saver = RankCheckpointSaverHook(
                        self.model_dir,
                        self.config.save_checkpoints_secs,
                        self.config.save_checkpoints_steps,
                        saver=spec.scaffold.saver,
                    )
                    hooks.append(self._rank_saver)
            return hooks

else:
    NPUEstimator = needs_estimator("NPUEstimator", _DOC)  # type: ignore[misc,assignment]


def _looped(spec: EstimatorSpec, iterations: int) -> EstimatorSpec:
    """Return a spec whose train op makes several steps for one run."""
    if _device.is_npu():
        loop = IterationsPerLoopHook(iterations)
        return spec._replace(
            train_op=loop.looped(_tf.tf.group(spec.train_op)), training_hooks=tuple(spec.training_hooks) + (loop,)
        )
    host_hooks = _host_hooks(spec)
    op = _tf.tf.group(spec.train_op, *(hook.step_op() for hook in host_hooks), name=ITERATION_OP)
    hooks = tuple(spec.training_hooks) + tuple(host_hooks) + (SetIterationsVarHook(iterations, op),)
    done = {"host_call": None} if host_hooks else {}
    return spec._replace(train_op=op, training_hooks=hooks, **done)


def _host_hooks(spec: EstimatorSpec) -> list[SessionRunHook]:
    host_call = getattr(spec, "host_call", None)
    return [] if host_call is None else [HostCallHook(host_call)]
