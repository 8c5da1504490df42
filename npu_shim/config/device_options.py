"""The options of the vendor's package for TensorFlow 2, as attributes: ``npu.global_options().precision_mode = ...``.

Names, defaults and allowed values come from the option table.
"""

from __future__ import annotations

import functools
import warnings
from typing import Sequence

from npu_shim._tensorflow.types import OptionValue as Value
from npu_shim.options.near import did_you_mean
from npu_shim.options.option import Option
from npu_shim.options.table import TABLE

_WRITTEN = {"True": "1", "False": "0"}
# Options that published scripts set and current releases do not have, and what replaces them.
_REMOVED = {"auto_tune_mode": "aoe_config.aoe_mode"}


class OptionValue:
    """The value of an option.

    Args:
        default: its value at first; None if it is not set.
        optional: the allowed values; None for any.
    """

    def __init__(self, default: Value | None, optional: Sequence[Value | None] | None) -> None:
        self._default = default
        self._optional = optional
        self._value = default
        self.name = "the option"

    @property
    def default(self) -> Value | None:
        """Its value at first."""
        return self._default

    @property
    def optional(self) -> Sequence[Value | None] | None:
        """The allowed values; None for any."""
        return self._optional

    @property
    def value(self) -> str | None:
        """The text that the device gets, with "1" for True and "0" for False; None if it is not set."""
        return None if self._value is None else _WRITTEN.get(str(self._value), str(self._value))

    @value.setter
    def value(self, value: Value | None) -> None:
        if self._optional is not None and value not in self._optional:
            allowed = ", ".join(repr(choice) for choice in self._optional)
            wanted = type(self._default)
            if self._default is not None and not isinstance(value, wanted):
                kind = type(value).__name__
                raise TypeError(f"{self.name}={value!r} is {kind}, but must be {wanted.__name__}: one of {allowed}.")
            raise ValueError(f"{self.name}={value!r} is not allowed. It must be one of {allowed}.")
        self._value = value

    @property
    def given(self) -> Value | None:
        """The value as it was set."""
        return self._value

    @property
    def is_changed(self) -> bool:
        """True if the value is not that at first."""
        return self._value != self._default

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._value!r})"


class DeprecatedValue(OptionValue):
    """The value of a deprecated option, without default.

    Args:
        optional: the allowed values; None for any.
        replacement: the option to use instead; None if there is none.
    """

    def __init__(self, optional: Sequence[Value | None] | None, *, replacement: str | None) -> None:
        super().__init__(None, optional)
        self.replacement = replacement

    def notice(self, name: str) -> str:
        """Return the line that the vendor's package prints for it."""
        fix = f"use '{self.replacement}' instead" if self.replacement else "do not configure this option in the future"
        return (
            f"[warning][tf_adapter] Option '{name}' is deprecated and will be removed in future version. Please {fix}."
        )


class NpuBaseConfig:
    """A group of options and of other groups. A subclass sets them as attributes before it calls this constructor."""

    def __init__(self) -> None:
        known = [name for name, value in vars(self).items() if isinstance(value, (OptionValue, NpuBaseConfig))]
        vars(self)["_is_read"] = False  # True after the device has read the options
        self._fixed_attrs = known

    def __setattr__(self, name: str, value: Value) -> None:
        known: list[str] | None = vars(self).get("_fixed_attrs")
        present = vars(self).get(name)
        if known is None:
            super().__setattr__(name, value)
        elif name in _REMOVED and hasattr(self, _REMOVED[name].split(".")[0]):
            warnings.warn(f"{name}={value!r} has no effect. Use {_REMOVED[name]}.", UserWarning, stacklevel=2)
        elif name not in known:
            raise ValueError(f"{type(self).__name__} has no option {name!r}.{did_you_mean(name, known)}")
        elif isinstance(present, OptionValue):
            present.value = value
            if vars(self)["_is_read"]:
                text = (
                    f"{name}={value!r} is set after npu.open(), and the NPU does not read it. Set it before npu.open()."
                )
                warnings.warn(text, UserWarning, stacklevel=2)
            if isinstance(present, DeprecatedValue):
                fix = f"Use {present.replacement}." if present.replacement else "Remove it."
                warnings.warn(f"{present.name} is deprecated. {fix}", DeprecationWarning, stacklevel=2)
        elif not isinstance(value, type(present)):
            raise TypeError(f"{name}={value!r} must be a {type(present).__name__}. Set its options, as {name}.x = ...")
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> OptionValue:
        known = vars(self).get("_fixed_attrs", ())
        raise AttributeError(f"{type(self).__name__} has no option {name!r}.{did_you_mean(name, known)}")

    def set_read(self, is_read: bool) -> None:
        """Note that the device has read the options: what is set later has no effect on an NPU."""
        vars(self)["_is_read"] = is_read
        for name in self._fixed_attrs:
            if isinstance(vars(self)[name], NpuBaseConfig):
                vars(self)[name].set_read(is_read)

    def names(self) -> list[str]:
        """Return the names of its options and groups."""
        return list(self._fixed_attrs)

    def as_dict(self) -> dict[str, str]:
        """Return the options that are set, those of the groups included, as texts for the device.

        Deprecated options among them are printed in the form of the vendor's package.
        """
        options: dict[str, str] = {}
        for name in self._fixed_attrs:
            part = getattr(self, name)
            if isinstance(part, NpuBaseConfig):
                options.update(part.as_dict())
            elif part.value is not None:
                options[name] = part.value
                if isinstance(part, DeprecatedValue):
                    print(part.notice(name))  # noqa: T201 -- scripts that read the vendor's output find it there
        return options


class _Group(NpuBaseConfig):
    """A group whose options are the rows of the table with a path below its own; None for no options."""

    _path: str | None = None
    _groups: dict[str, type[_Group]] = {}

    def __init_subclass__(cls, path: str | None = None) -> None:
        cls._path = cls._path if path is None else path

    def __init__(self) -> None:
        for row in TABLE:
            path, _, name = (row.tf2_path or "").rpartition(".")
            if name and path == self._path and not row.holds:
                setattr(self, name, _option_value(row))
        for name, group in self._groups.items():
            setattr(self, name, group())
        super().__init__()


def _option_value(row: Option) -> OptionValue:
    allowed = row.values_for_tf2
    deprecated = DeprecatedValue(allowed, replacement=row.replacement)
    option = deprecated if row.deprecated and row.tf2_deprecated else OptionValue(row.default_for_tf2, allowed)
    option.name = row.tf2_path or row.name
    return option


class NpuDumpConfig(_Group, path="dump_config"):
    """The tensors to dump."""


class NpuAoeConfig(_Group, path="aoe_config"):
    """Tuning of operators and graphs."""


class NpuProfilingConfig(_Group, path="profiling_config"):
    """Profiling of the device."""


class MemoryConfig(_Group, path="memory_config"):
    """Use of the device's memory."""


class NpuMultiBranchesConfig(_Group, path="experimental.multi_branches_config"):
    """Profiles of dynamic input shapes."""


class LogicalDeviceDeployConfig(_Group, path="experimental.logical_device_deploy_config"):
    """Deployment on logical devices."""


class ModelDeployConfig(_Group, path="experimental.model_deploy_config"):
    """Deployment of a model on several devices."""


class GraphMemoryOptimizeConfig(_Group, path="experimental.graph_memory_optimize_config"):
    """Memory savings of graphs."""


class NpuExperimentalConfig(_Group, path="experimental"):
    """Options that the vendor may still change."""

    _groups = {
        "multi_branches_config": NpuMultiBranchesConfig,
        "logical_device_deploy_config": LogicalDeviceDeployConfig,
        "model_deploy_config": ModelDeployConfig,
        "graph_memory_optimize_config": GraphMemoryOptimizeConfig,
    }


class NpuConfig(_Group, path=""):
    """The options of the device: ``npu.global_options()``."""

    _groups = {
        "dump_config": NpuDumpConfig,
        "aoe_config": NpuAoeConfig,
        "profiling_config": NpuProfilingConfig,
        "memory_config": MemoryConfig,
        "experimental": NpuExperimentalConfig,
    }


class NpuRunContextOptions(_Group):
    """The options of ``npu.npu_run_context``."""

    _groups = {"experimental": NpuExperimentalConfig}


def session_options(config: NpuConfig) -> dict[str, Value | None]:
    """Return the options that a script has changed, with the names that a session has for them."""
    options: dict[str, Value | None] = {}
    for row in TABLE:
        if row.tf2_path and "session" in row.modes and not row.holds:
            option = functools.reduce(getattr, row.tf2_path.split("."), config)
            if option.is_changed:
                options[row.name] = option.given
    return options
