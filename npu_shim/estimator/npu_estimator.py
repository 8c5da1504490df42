"""NPUEstimator: an Estimator whose sessions carry the NPU options."""
from __future__ import annotations

import json
from typing import Any, List, Optional

from npu_shim import _device, _env, _tf
from npu_shim.config.estimator_session import estimator_session_config
from npu_shim.config.placeholder import needs_estimator
from npu_shim.config.run_config import NPURunConfig, from_run_config
from npu_shim.config.session import has_npu_optimizer
from npu_shim.data.static_batch import enforce_static_batch
from npu_shim.estimator import step_intervals
from npu_shim.estimator.host_call import HostCallHook
from npu_shim.estimator.hooks import NPUBroadcastGlobalVariablesHook, SetIterationsVarHook
from npu_shim.optimizer.iterations import ITERATION_OP, LoopHook

_API: Any = _tf.estimator()
_DOC = "An Estimator that trains on the NPU, and on the CPU where there is none."


def npu_run_config(config: Any) -> Any:
    """The NPURunConfig of an NPUEstimator.

    Args:
        config: an NPURunConfig; None for all defaults; or a RunConfig that has
            been through npu_run_config_init.
    Returns:
        An NPURunConfig whose session config carries its NPU options.
    Raises:
        ValueError: config is a plain RunConfig, or something else.
    """
    if config is None:
        config = NPURunConfig()
    elif not isinstance(config, NPURunConfig):
        if not isinstance(config, _API.RunConfig) or not has_npu_optimizer(config.session_config):
            raise ValueError(
                f"config={config!r} is {type(config).__name__}, but NPUEstimator needs an NPURunConfig: write "
                "config=NPURunConfig(...) with the same arguments, or config=npu_run_config_init(run_config=...)."
            )
        config = from_run_config(config)
    return config.replace(session_config=estimator_session_config(config))


def check_job_start_file(name: str) -> None:
    """Reads a job start file, which replaces JOB_ID.

    Raises:
        ValueError: there is no such file, or it holds no JSON object.
    """
    try:
        with open(name, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError) as error:
        raise ValueError(f"job_start_file={name!r} cannot be read ({error}): give a JSON file, or leave it out.") from error
    if not isinstance(content, dict):
        raise ValueError(f"job_start_file={name!r} holds {type(content).__name__}, but must hold a JSON object.")


if _API is not None:

    class NPUEstimator(_API.Estimator):
        __doc__ = _DOC + """

        Everything a tf.estimator.Estimator does keeps working: train, evaluate,
        predict, export_saved_model, train_and_evaluate, warm start, hooks.

        Training input that arrives as a tf.data.Dataset gets a static batch
        dimension (npu_shim.data.enforce_static_batch): a smaller last batch is
        dropped and one log line counts it. Evaluation and prediction lose nothing.

        ``iterations_per_loop=N`` makes N training steps for each run: hooks run
        every N steps, with the values of the last one, and a number of steps
        that is no multiple of N is exceeded by the rest of the last run.

        Args:
            model_fn: as for Estimator; may return an NPUEstimatorSpec.
            model_dir: directory of checkpoints; the run config's when None.
            config: an NPURunConfig, or None for its defaults.
            params: hyperparameters for model_fn.
            job_start_file: a JSON file that stands for JOB_ID; one process needs neither.
            warm_start_from: a checkpoint, SavedModel or WarmStartSettings to start from.
        Raises:
            ValueError: config is a plain RunConfig, or job_start_file cannot be read.
        """

        def __init__(self, model_fn: Any = None, model_dir: Optional[str] = None, config: Any = None,
                     params: Any = None, job_start_file: str = "", warm_start_from: Any = None) -> None:
            _device.resolve()
            if job_start_file:
                check_job_start_file(job_start_file)
            super().__init__(model_fn=model_fn, model_dir=model_dir, config=npu_run_config(config), params=params,
                             warm_start_from=warm_start_from)

        export_savedmodel = _tf.v1.estimator.Estimator.export_savedmodel  # hidden in TF 2's Estimator

        def train(self, input_fn: Any, hooks: Any = None, steps: Optional[int] = None, max_steps: Optional[int] = None,
                  saving_listeners: Any = None) -> Any:
            """Trains as Estimator.train does; see there."""
            iterations = self.config.iterations_per_loop
            if iterations > 1:
                step_intervals.tell(self.config)
                step_intervals.tell_overrun(iterations, _tf.saved_step(self.model_dir), steps, max_steps)
            return super().train(input_fn, hooks, steps, max_steps, saving_listeners)

        def _assert_members_are_not_overridden(self) -> None:
            """Estimator's own way to allow a subclass that overrides its members, as this one does."""

        def _call_input_fn(self, input_fn: Any, mode: str, input_context: Any = None) -> Any:
            result = super()._call_input_fn(input_fn, mode, input_context)
            if mode == _API.ModeKeys.TRAIN and isinstance(result, (_tf.tf.data.Dataset, _tf.v1.data.Dataset)):
                return enforce_static_batch(result)
            return result

        def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> Any:
            spec = super()._call_model_fn(features, labels, mode, config)
            if mode == _API.ModeKeys.TRAIN:
                if self.config.iterations_per_loop > 1:
                    spec = _looped(spec, self.config.iterations_per_loop)
                return spec._replace(training_hooks=tuple(spec.training_hooks) + tuple(self._training_hooks(spec)))
            if mode == _API.ModeKeys.EVAL:
                return spec._replace(evaluation_hooks=tuple(spec.evaluation_hooks) + tuple(_host_hooks(spec)))
            return spec

        def _training_hooks(self, spec: Any) -> List[Any]:
            environment = _env.read()
            hooks = _host_hooks(spec)
            if environment.is_distributed and not self.config.horovod_mode:
                hooks.append(NPUBroadcastGlobalVariablesHook(0, environment.rank_id))
            return hooks

else:
    NPUEstimator = needs_estimator("NPUEstimator", _DOC)  # type: ignore[misc,assignment]


def _looped(spec: Any, iterations: int) -> Any:
    """A spec whose train op makes several steps for one run."""
    if _device.device().is_npu:
        loop = LoopHook(iterations)
        return spec._replace(train_op=loop.loop_of(_tf.tf.group(spec.train_op)),
                             training_hooks=tuple(spec.training_hooks) + (loop,))
    host_hooks = _host_hooks(spec)
    op = _tf.tf.group(spec.train_op, *(hook.step_op() for hook in host_hooks), name=ITERATION_OP)
    hooks = tuple(spec.training_hooks) + tuple(host_hooks) + (SetIterationsVarHook(iterations, op),)
    done = {"host_call": None} if host_hooks else {}
    return spec._replace(train_op=op, training_hooks=hooks, **done)


def _host_hooks(spec: Any) -> List[Any]:
    host_call = getattr(spec, "host_call", None)
    return [] if host_call is None else [HostCallHook(host_call)]
