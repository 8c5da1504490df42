"""The config classes NPURunConfig is given; their arguments, defaults and checks come from the option rows."""

from __future__ import annotations

import inspect
from typing import Any

from npu_shim.options import page
from npu_shim.options.check import check_value
from npu_shim.options.near import closest
from npu_shim.options.option import ALWAYS, Option
from npu_shim.options.table import arguments_of, signature_of


class NestedConfig:
    """Holds options. Each argument is an attribute; wrong types and values are refused at once."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__signature__ = signature_of(cls.__name__)  # type: ignore[attr-defined]
        cls.__doc__ = f"{cls.__doc__}\n\nArgs:\n{page.arguments(cls.__name__)}\n"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cls = type(self)
        for name, value in bind(cls.__name__, cls.__signature__, args, kwargs).arguments.items():  # type: ignore
            setattr(self, name, check_argument(arguments_of(cls.__name__)[name], name, value))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({inside})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class ProfilingConfig(NestedConfig):
    """What to profile on the card. On the CPU it is carried along and has no effect."""


class MemoryConfig(NestedConfig):
    """How the card's memory is used. On the CPU it is carried along and has no effect."""


class DumpConfig(NestedConfig):
    """Which tensors to dump from the card. On the CPU it is carried along and has no effect."""


class DynamicInputConfig(NestedConfig):
    """Profiles of changing input shapes. All four arguments are required, as the vendor has it."""


class GraphMemoryOptimizeConfig(NestedConfig):
    """How graphs save memory; an argument of ExperimentalConfig."""


class ExperimentalConfig(NestedConfig):
    """Options the vendor may still change. Not part of the star import: import it by name."""


CLASSES: dict[str, type] = {cls.__name__: cls for cls in NestedConfig.__subclasses__()}


def bind(owner: str, signature: inspect.Signature, args: Any, kwargs: Any) -> inspect.BoundArguments:
    """Binds arguments and applies defaults; an unknown name gets the closest ones.

    Raises:
        TypeError: as Python does for wrong arguments.
    """
    for name in kwargs:
        if name not in signature.parameters:
            raise TypeError(f"{owner} has no argument {name!r}.{closest(name, signature.parameters)}")
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{owner}: {error}") from None
    bound.apply_defaults()
    return bound


def check_argument(row: Option, name: str, value: Any) -> Any:
    """Checks one constructor argument against its row.

    Raises:
        TypeError, ValueError: naming argument, value and what is allowed.
    """
    if row.holds is not None and value is not None and not isinstance(value, CLASSES[row.holds]):
        raise ValueError(f"{name}={value!r} is {type(value).__name__}, but must be a {row.holds} or None.")
    if row.type is None or (value is None and row.write != ALWAYS):
        return value
    return check_value(row, value, name)
