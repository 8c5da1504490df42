"""Config classes for arguments of NPURunConfig. Their arguments, defaults and checks come from the option rows.

On an NPU each class is derived from the vendor's.
"""

from __future__ import annotations

import inspect
from typing import Mapping, Sequence

from npu_shim._host import host_device
from npu_shim._tensorflow.types import OptionValue
from npu_shim.options import page
from npu_shim.options.check import checked_value
from npu_shim.options.near import did_you_mean
from npu_shim.options.option import ALWAYS, Option
from npu_shim.options.table import KEYS, constructor_signature, options_by_argument

_VENDORS = host_device.find_vendor_module("npu_bridge.estimator.npu.npu_config")


class NestedConfig:
    """A group of options. Each argument is an attribute. Wrong types and values raise an error at once."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls.__signature__ = constructor_signature(cls.__name__)  # type: ignore[attr-defined]
        cls.__doc__ = f"{cls.__doc__}\n\nArgs:\n{page.arguments_docstring(cls.__name__)}\n"

    def __init__(self, *args: OptionValue, **kwargs: OptionValue) -> None:
        cls = type(self)
        for name, value in bind_arguments(cls.__name__, cls.__signature__, args, kwargs).arguments.items():  # type: ignore
            setattr(self, name, checked_argument(options_by_argument(cls.__name__)[name], name, value))
        vars(self).update(vendors_attributes(cls.__name__, vars(self)))

    def __repr__(self) -> str:
        names = type(self).__signature__.parameters  # type: ignore[attr-defined]
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__name__}({inside})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def _vendors_class(name: str) -> type:
    """Return the vendor's class of a name on an NPU, else ``object``."""
    return getattr(_VENDORS, name, object)


def vendors_attributes(name: str, arguments: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Return the attributes of an object of the vendor's class on an NPU, else an empty dict.

    Args:
        name: of the class.
        arguments: of npu_shim's class, checked; those that this version of the vendor's class lacks are left out.
    """
    cls = _vendors_class(name)
    if cls is object:
        return {}
    known = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    return vars(cls(**{argument: value for argument, value in arguments.items() if argument in known}))


class ProfilingConfig(NestedConfig, _vendors_class("ProfilingConfig")):  # type: ignore[misc]
    """Profiling on the NPU. Has no effect on the CPU."""


class MemoryConfig(NestedConfig, _vendors_class("MemoryConfig")):  # type: ignore[misc]
    """Memory use on the NPU. Has no effect on the CPU."""


class DumpConfig(NestedConfig, _vendors_class("DumpConfig")):  # type: ignore[misc]
    """Tensors to dump on the NPU. Has no effect on the CPU."""


class DynamicInputConfig(NestedConfig, _vendors_class("DynamicInputConfig")):  # type: ignore[misc]
    """Profiles of dynamic input shapes. All four arguments are required, as in the vendor's class."""


class GraphMemoryOptimizeConfig(NestedConfig, _vendors_class("GraphMemoryOptimizeConfig")):  # type: ignore[misc]
    """Memory savings of graphs; an argument of ExperimentalConfig."""


class ExperimentalConfig(NestedConfig, _vendors_class("ExperimentalConfig")):  # type: ignore[misc]
    """Options that the vendor may still change. Import the class by name; it is not part of the star import."""


CLASSES: dict[str, type] = {cls.__name__: cls for cls in NestedConfig.__subclasses__()}


def bind_arguments(
    owner: str, signature: inspect.Signature, args: Sequence[OptionValue], kwargs: Mapping[str, OptionValue]
) -> inspect.BoundArguments:
    """Bind arguments and apply defaults. The error for an unknown name has the replacement, or lists close names.

    Raises:
        TypeError: for wrong arguments, as in Python.
    """
    for name in kwargs:
        if name not in signature.parameters:
            gone = KEYS.get(name)
            hint = f" {gone.deprecated}" if gone and gone.deprecated else did_you_mean(name, signature.parameters)
            raise TypeError(f"{owner} has no argument {name!r}.{hint}")
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{owner}: {error}") from None
    bound.apply_defaults()
    return bound


def checked_argument(row: Option, name: str, value: OptionValue) -> OptionValue:
    """Check a constructor argument against its row and return its value.

    Raises:
        TypeError, ValueError: with the argument, its value and the allowed values.
    """
    if row.holds is not None and value is not None and not isinstance(value, CLASSES[row.holds]):
        raise ValueError(f"{name}={value!r} is {type(value).__name__}, but must be a {row.holds} or None.")
    if row.type is None or (value is None and row.write != ALWAYS):
        return value
    return checked_value(row, value, name)
