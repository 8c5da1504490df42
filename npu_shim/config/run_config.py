"""NPURunConfig: a tf.estimator.RunConfig with the NPU options."""

from __future__ import annotations

import inspect
from typing import Collection, Iterable

from npu_shim._host import host_device, host_env
from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import EstimatorModule, OptionValue, RunConfig
from npu_shim.config.estimator_map import estimator_options, given_options
from npu_shim.config.nested import bind_arguments, checked_argument, vendors_attributes
from npu_shim.config.placeholder import make_placeholder_class
from npu_shim.config.session import copy_message
from npu_shim.options import page
from npu_shim.options.check import check_combinations, warn_if_deprecated
from npu_shim.options.table import constructor_signature, options_by_argument

_API: EstimatorModule = tf_api.estimator_namespace()
_ARGUMENTS = options_by_argument(None)
_VENDORS = host_device.find_vendor_module("npu_bridge.estimator.npu.npu_config")
_DATA_PARALLEL = (
    "For data-parallel training, unset TF_CONFIG, replace distribute with train_distribute=npu_strategy.NPUStrategy() "
    "and start the ranks with npu-shim launch --ranks N script.py."
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


def from_run_config(run_config: RunConfig) -> NPURunConfig:
    """Return an NPURunConfig with the values of a plain RunConfig, and defaults for the rest."""
    result: RunConfig = NPURunConfig()
    result.__dict__.update(vars(run_config))
    return result


if _API is not None:

    class NPURunConfig(_API.RunConfig if _VENDORS is None else _VENDORS.NPURunConfig):  # type: ignore[misc]
        """Run config of an NPUEstimator.

        It takes every argument of the vendor's class, in the same order and
        with the same defaults, and checks each one. In everything else it is a
        tf.estimator.RunConfig. Other arguments of RunConfig (device_fn,
        protocol ...) are accepted by keyword. Each NPU argument is an attribute
        of the same name.

        Two defaults differ from RunConfig, as in the vendor's class: no
        summaries (save_summary_steps=0), and a checkpoint every 100 steps if
        no save argument is given.

        On the NPU the options control the compiler, and the class is derived from
        the vendor's. On the CPU they are checked and kept in the session config.

        Raises:
            TypeError: for an unknown argument, or a value of the wrong type.
            ValueError: if a value is not allowed, or arguments contradict each other.
        """

        def __init__(self, *args: OptionValue, **kwargs: OptionValue) -> None:
            extra = {name: kwargs.pop(name) for name in list(kwargs) if name in _arguments_of_parent_only()}
            names = tuple(_ARGUMENTS)[: len(args)] + tuple(kwargs)
            self._npu_given = frozenset(names)
            values = dict(bind_arguments("NPURunConfig", type(self).__signature__, args, kwargs).arguments)
            self._set_npu_values(values, names)
            _API.RunConfig.__init__(self, **_parent_arguments(values), **extra)

        def _set_npu_values(self, values: dict[str, OptionValue], names: Collection[str]) -> None:
            checked = {name: checked_argument(_ARGUMENTS[name], name, value) for name, value in values.items()}
            for name in names:
                if checked.get(name) is not None:
                    warn_if_deprecated(_ARGUMENTS[name], name)
            check_combinations(given_options(checked, names))
            copy_message(checked.get("session_config"), tf_api.ConfigProto, "session_config")  # checks it
            _check_cluster(checked)
            self._npu_values = {name: value for name, value in checked.items() if name not in _PARENT}
            for name, value in self._npu_values.items():
                setattr(self, name, value)
            if _VENDORS is not None:
                self.__dict__.update(_vendor_only_attributes(checked))

        def npu_options(self) -> dict[str, OptionValue]:
            """Return the options that NPUEstimator writes into the parameter_map, by key."""
            return estimator_options(self._npu_values, host_env.read_environment().tf_config)

        def given_npu_options(self) -> dict[str, OptionValue]:
            """Return those of npu_options that the user gave as arguments."""
            return given_options(self._npu_values, self._npu_given)

        def replace(self, **kwargs: OptionValue) -> NPURunConfig:
            """Return a copy with some arguments replaced: those of RunConfig.replace and every NPU argument."""
            npu = {name: kwargs.pop(name) for name in list(kwargs) if name in self._npu_values}
            result = super().replace(**kwargs)
            if npu:
                result._npu_given |= frozenset(npu)
                result._set_npu_values({**self._npu_values, **npu}, result._npu_given)
            return result

    NPURunConfig.__signature__ = constructor_signature(None)
    NPURunConfig.__doc__ = (
        f"{inspect.cleandoc(NPURunConfig.__doc__ or '')}\n\nArgs:\n{page.arguments_docstring(None)}\n"
    )

else:
    NPURunConfig = make_placeholder_class("NPURunConfig", "Run config of an NPUEstimator.")  # type: ignore[misc,assignment]


def _vendor_only_attributes(values: dict[str, OptionValue]) -> dict[str, OptionValue]:
    """Return the attributes of the vendor's NPURunConfig that a RunConfig does not have, for checked arguments."""
    arguments = {name: value for name, value in values.items() if name not in _PARENT}
    if arguments.get("insert_op_file") is not None:  # the vendor's class assigns it to a field of bytes
        arguments["insert_op_file"] = tf_api.tf.compat.as_bytes(arguments["insert_op_file"])
    attributes = vendors_attributes("NPURunConfig", arguments)
    return {name: value for name, value in attributes.items() if name not in vars(_API.RunConfig())}


def _arguments_of_parent_only() -> Iterable[str]:
    """Return the arguments of TensorFlow's RunConfig that the vendor's class does not have."""
    return [name for name in inspect.signature(_API.RunConfig.__init__).parameters if name not in _ARGUMENTS]


def _parent_arguments(values: dict[str, OptionValue]) -> dict[str, OptionValue]:
    parent = {name: values[name] for name in _PARENT}
    if parent["save_checkpoints_steps"] is None and parent["save_checkpoints_secs"] is None:
        parent["save_checkpoints_steps"] = 100
    if values["distribute"] is not None and parent["train_distribute"] is None:
        parent["train_distribute"] = values["distribute"]
    return parent


def _check_cluster(values: dict[str, OptionValue]) -> None:
    horovod = values["horovod_mode"]
    if not isinstance(horovod, bool):
        raise ValueError(f"horovod_mode={horovod!r} is not allowed: it must be True or False.")
    cluster = host_env.read_environment().has_cluster
    strategy = tf_api.tf.distribute.experimental.ParameterServerStrategy
    v1_strategy = getattr(tf_api.v1.distribute.experimental, "ParameterServerStrategy", strategy)
    is_server = isinstance(values["distribute"], (strategy, v1_strategy))
    if values["distribute"] is not None and not is_server:
        raise ValueError(
            f"distribute={values['distribute']!r} is not allowed: it must be a ParameterServerStrategy. "
            "Use train_distribute for other strategies."
        )
    if cluster != is_server:
        raise ValueError(
            f"TF_CONFIG {'names' if cluster else 'does not name'} a cluster, but distribute={values['distribute']!r}. "
            f"Set both a cluster and distribute=ParameterServerStrategy(), or neither. {_DATA_PARALLEL}"
        )
    if cluster and not values["mix_compile_mode"]:
        raise ValueError("TF_CONFIG names a cluster, which needs mix_compile_mode=True. Set it.")
    if cluster and not host_device.is_npu():
        raise ValueError(
            "distribute=ParameterServerStrategy() with the cluster of TF_CONFIG is not allowed on the CPU, "
            f"which has no parameter servers. {_DATA_PARALLEL}"
        )
