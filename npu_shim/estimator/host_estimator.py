"""The Estimator behind NPUEstimator where there is no NPU: its hooks, and several steps for each run."""

from __future__ import annotations

from typing import Sequence

from npu_shim._host import host_env
from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import (
    EstimatorModule,
    EstimatorSpec,
    InputFn,
    RunConfig,
    SessionRunHook,
    Structure,
    Value,
)
from npu_shim.config.estimator_session import estimator_session_config
from npu_shim.config.graph_passes import config_for_this_device
from npu_shim.distributed.world import world_size
from npu_shim.estimator.arguments import as_npu_run_config, check_job_start_file
from npu_shim.estimator.hooks import SetIterationsVarHook
from npu_shim.estimator.host_call import HostCallHook
from npu_shim.estimator.rank_checkpoints import RankCheckpointSaverHook, rank_export_folder, redirect_event_files
from npu_shim.optimizer.iterations_per_loop import ITERATION_OP
from npu_shim.training.broadcasting import NPUBroadcastGlobalVariablesHook

_API: EstimatorModule = tf_api.estimator_namespace()


class HostEstimator(_API.Estimator):
    """An Estimator with the session config of an NPURunConfig, whose ranks write their files apart.

    Args:
        config: as for NPUEstimator.
        job_start_file: a JSON file, which is only checked.
        **kwargs: as for tf.estimator.Estimator.
    """

    def __init__(self, *, config: RunConfig | None, job_start_file: str, **kwargs: object) -> None:
        self._rank_saver: RankCheckpointSaverHook | None = None
        self._saves_itself = False
        if job_start_file:
            check_job_start_file(job_start_file)
        config = as_npu_run_config(config)
        super().__init__(config=config.replace(session_config=estimator_session_config(config)), **kwargs)
        self._session_config = config_for_this_device(self.config.session_config)  # that config is for the NPU

    def train(
        self, input_fn: InputFn, hooks: Sequence[SessionRunHook] | None = None, *args: object, **kwargs: object
    ) -> HostEstimator:
        """Train; see tf.estimator.Estimator.train."""
        self._saves_itself = any(isinstance(hook, tf_api.v1.train.CheckpointSaverHook) for hook in hooks or ())
        with redirect_event_files(self.model_dir):
            return super().train(input_fn, hooks, *args, **kwargs)

    def evaluate(
        self,
        input_fn: InputFn,
        steps: int | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Value]:
        """Evaluate; see tf.estimator.Estimator.evaluate. Each rank evaluates all data."""
        with redirect_event_files(self.eval_dir(name)):
            return super().evaluate(input_fn, steps, hooks, checkpoint_path, name)

    def _export_all_saved_models(self, export_dir_base: str, *args: object, **kwargs: object) -> bytes:
        base = (
            rank_export_folder(export_dir_base)
            if self._rank_saver and not self._rank_saver.is_writer
            else export_dir_base
        )
        return super()._export_all_saved_models(base, *args, **kwargs)

    def _call_model_fn(self, features: Structure, labels: Structure, mode: str, config: RunConfig) -> EstimatorSpec:
        spec = super()._call_model_fn(features, labels, mode, config)
        if mode == _API.ModeKeys.TRAIN:
            if self.config.iterations_per_loop > 1:
                spec = _spec_with_step_loop(spec, self.config.iterations_per_loop)
            return spec._replace(training_hooks=tuple(spec.training_hooks) + tuple(self._training_hooks(spec)))
        if mode == _API.ModeKeys.EVAL:
            return spec._replace(evaluation_hooks=tuple(spec.evaluation_hooks) + tuple(_host_hooks(spec)))
        return spec

    def _training_hooks(self, spec: EstimatorSpec) -> list[SessionRunHook]:
        hooks = _host_hooks(spec)
        if world_size() > 1 and not self.config.horovod_mode:
            hooks.append(NPUBroadcastGlobalVariablesHook(0, host_env.read_environment().rank_id))
            if not self._saves_itself and not any(
                isinstance(h, tf_api.v1.train.CheckpointSaverHook) for h in spec.training_hooks
            ):
                self._rank_saver = RankCheckpointSaverHook(
                    self.model_dir,
                    self.config.save_checkpoints_secs,
                    self.config.save_checkpoints_steps,
                    saver=spec.scaffold.saver,
                )
                hooks.append(self._rank_saver)
        return hooks


def _spec_with_step_loop(spec: EstimatorSpec, iterations: int) -> EstimatorSpec:
    """Return a spec whose train op makes several steps for one run."""
    host_hooks = _host_hooks(spec)
    op = tf_api.tf.group(spec.train_op, *(hook.step_op() for hook in host_hooks), name=ITERATION_OP)
    hooks = tuple(spec.training_hooks) + tuple(host_hooks) + (SetIterationsVarHook(iterations, op),)
    done = {"host_call": None} if host_hooks else {}
    return spec._replace(train_op=op, training_hooks=hooks, **done)


def _host_hooks(spec: EstimatorSpec) -> list[SessionRunHook]:
    host_call = getattr(spec, "host_call", None)
    return [] if host_call is None else [HostCallHook(host_call)]
