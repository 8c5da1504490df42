"""NPURunConfig: a RunConfig that also carries the NPU options."""

from __future__ import annotations

import inspect
from typing import Any, Iterable

from npu_shim import _device, _env, _tf
from npu_shim.config.estimator_map import estimator_options, given_options
from npu_shim.config.nested import bind, check_argument
from npu_shim.config.placeholder import needs_estimator
from npu_shim.options import page
from npu_shim.options.check import check_together, warn_if_deprecated
from npu_shim.options.table import arguments_of, signature_of

_API: Any = _tf.estimator()
_ARGUMENTS = arguments_of(None)
_IN_STEP = (
    "To train data parallel instead, unset TF_CONFIG, write train_distribute=npu_strategy.NPUStrategy() in place of "
    "distribute, and start the ranks with npu-shim launch --ranks N script.py."
)
_PARENT = (
    "model_dir",
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "session_config",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
    "train_distribute",
    "eval_distribute",
)


def from_run_config(run_config: Any) -> Any:
    """An NPURunConfig with everything a plain RunConfig says and the defaults for the rest."""
    result: Any = NPURunConfig()
    vars(result).update(vars(run_config))
    return result


if _API is not None:

    class NPURunConfig(_API.RunConfig):
        """Run config of an NPUEstimator.

        Takes every argument of the vendor's class, in his order and with his
        defaults, checks each when it is given, and is a tf.estimator.RunConfig
        in everything else. Arguments RunConfig has and the vendor leaves out
        (device_fn, protocol ...) are taken by keyword. Each NPU argument is an
        attribute of the same name.

        Two defaults differ from RunConfig's, as the vendor has it: no
        summaries (save_summary_steps=0), and a checkpoint every 100 steps where
        neither save argument is given.

        On the card the options steer the compiler; on the CPU they are checked
        and carried along in the session config.

        Raises:
            TypeError: unknown argument, or a value of the wrong type.
            ValueError: a value that is not allowed, or arguments that contradict each other.
        """

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            extra = {name: kwargs.pop(name) for name in list(kwargs) if name in _parent_only()}
            names = tuple(_ARGUMENTS)[: len(args)] + tuple(kwargs)
            self._npu_given = frozenset(names)
            values = dict(bind("NPURunConfig", type(self).__signature__, args, kwargs).arguments)
            self._set_npu_values(values, names)
            super().__init__(**_parent_arguments(values), **extra)

        def _set_npu_values(self, values: dict[str, Any], names: Iterable[str]) -> None:
            checked = {name: check_argument(_ARGUMENTS[name], name, value) for name, value in values.items()}
            for name in names:
                if checked.get(name) is not None:
                    warn_if_deprecated(_ARGUMENTS[name], name)
            check_together(given_options(checked, names))
            _check_session_config(checked.get("session_config"))
            _check_cluster(checked)
            self._npu_values = {name: value for name, value in checked.items() if name not in _PARENT}
            for name, value in self._npu_values.items():
                setattr(self, name, value)

        def npu_options(self) -> dict[str, Any]:
            """What NPUEstimator writes into the parameter_map: key to value."""
            return estimator_options(self._npu_values, _env.read().tf_config)

        def given_npu_options(self) -> dict[str, Any]:
            """The part of npu_options that was given as an argument rather than left at its default."""
            return given_options(self._npu_values, self._npu_given)

        def replace(self, **kwargs: Any) -> NPURunConfig:
            """A copy with some arguments replaced: those of RunConfig.replace and every NPU argument."""
            npu = {name: kwargs.pop(name) for name in list(kwargs) if name in self._npu_values}
            result = super().replace(**kwargs)
            if npu:
                result._npu_given |= frozenset(npu)
                result._set_npu_values({**self._npu_values, **npu}, result._npu_given)
            return result

    NPURunConfig.__signature__ = signature_of(None)
    NPURunConfig.__doc__ = f"{inspect.cleandoc(NPURunConfig.__doc__ or '')}\n\nArgs:\n{page.arguments(None)}\n"

else:
    NPURunConfig = needs_estimator("NPURunConfig", "Run config of an NPUEstimator.")  # type: ignore[misc,assignment]


def _parent_only() -> Iterable[str]:
    """Arguments of this TensorFlow's RunConfig that the vendor's class leaves out."""
    return [name for name in inspect.signature(_API.RunConfig.__init__).parameters if name not in _ARGUMENTS]


def _parent_arguments(values: dict[str, Any]) -> dict[str, Any]:
    parent = {name: values[name] for name in _PARENT}
    if parent["save_checkpoints_steps"] is None and parent["save_checkpoints_secs"] is None:
        parent["save_checkpoints_steps"] = 100
    if values["distribute"] is not None and parent["train_distribute"] is None:
        parent["train_distribute"] = values["distribute"]
    return parent


def _check_session_config(config: Any) -> None:
    if config is not None and not isinstance(config, _tf.ConfigProto):
        raise TypeError(
            f"session_config={config!r} is {type(config).__name__}, but must be a tf.compat.v1.ConfigProto or None."
        )


def _check_cluster(values: dict[str, Any]) -> None:
    horovod = values["horovod_mode"]
    if not isinstance(horovod, bool):
        raise ValueError(f"horovod_mode={horovod!r} is not allowed: it must be True or False.")
    cluster = _env.read().has_cluster
    strategy = _tf.tf.distribute.experimental.ParameterServerStrategy
    v1_strategy = getattr(_tf.v1.distribute.experimental, "ParameterServerStrategy", strategy)
    is_server = isinstance(values["distribute"], (strategy, v1_strategy))
    if values["distribute"] is not None and not is_server:
        raise ValueError(
            f"distribute={values['distribute']!r} is not allowed: it must be a ParameterServerStrategy. "
            "For other strategies use train_distribute."
        )
    if cluster != is_server:
        raise ValueError(
            f"TF_CONFIG {'names' if cluster else 'does not name'} a cluster, but distribute={values['distribute']!r}: "
            f"a cluster needs distribute=ParameterServerStrategy(), and that needs a cluster. Set both or neither. {_IN_STEP}"
        )
    if cluster and not values["mix_compile_mode"]:
        raise ValueError("TF_CONFIG names a cluster, which needs mix_compile_mode=True: set it.")
    if cluster and not _device.device().is_npu:
        raise ValueError(
            "distribute=ParameterServerStrategy() with the cluster of TF_CONFIG is not allowed without cards: ranks "
            f"have no parameter servers there. {_IN_STEP}"
        )
