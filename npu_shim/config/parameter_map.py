"""Reads and writes the parameter_map of an NpuOptimizer entry, field by field as the vendor's C++ does."""

from __future__ import annotations

import warnings
from typing import Any

from npu_shim.options.check import check_together, check_value
from npu_shim.options.near import closest
from npu_shim.options.option import Option
from npu_shim.options.table import KEYS, find

NPU_OPTIMIZER = "NpuOptimizer"


def has_npu_optimizer(config: Any) -> bool:
    """True when a tf.compat.v1.ConfigProto, or None, carries an NpuOptimizer entry."""
    return config is not None and any(
        custom.name == NPU_OPTIMIZER for custom in config.graph_options.rewrite_options.custom_optimizers
    )


def write(entry: Any, values: dict[str, Any]) -> None:
    """Writes checked values into ``entry.parameter_map``.

    Args:
        entry: a RewriterConfig.CustomGraphOptimizer.
        values: parameter_map key to bool, int or str.
    """
    for name, value in values.items():
        attr = entry.parameter_map[name]
        attr.Clear()
        field = str(KEYS[name].field)
        setattr(attr, field, value.encode("utf-8") if field == "s" else value)


def read(entry: Any) -> dict[str, Any]:
    """The known options of an entry that stand in their right field."""
    found = {}
    for name, attr in sorted(entry.parameter_map.items()):
        row = find(name)
        if row is not None and attr.WhichOneof("value") == row.field:
            found[name] = _plain(attr, row)
    return found


def check(entry: Any) -> None:
    """Checks a map that may have been filled by hand.

    What the card refuses is an error; what it passes over in silence, clamps
    or has outgrown is a warning.

    Args:
        entry: a RewriterConfig.CustomGraphOptimizer.
    Raises:
        ValueError: a value that the card refuses, or options that contradict each other.
    """
    for name, attr in sorted(entry.parameter_map.items()):
        row, field = find(name), attr.WhichOneof("value")
        if row is None:
            _warn(f"parameter_map[{name!r}] is no NPU option and has no effect.{closest(name, KEYS)}")
        elif field != row.field:
            text = (
                f"parameter_map[{name!r}] is set in field {field or '(none)'}, but is read from field {row.field}, so "
                f"the value is lost: write parameter_map[{name!r}].{row.field} = ... ({row.allowed.text})."
            )
            if row.refused and row.field == "s":  # the card reads an empty text, which it refuses
                raise ValueError(text)
            _warn(text)
        else:
            _check_one(row, name, _plain(attr, row))
    given = read(entry)
    for name in [name for name in given if not KEYS[name].refused]:
        missing = [other for other in KEYS[name].requires if other not in given]
        if missing:
            _warn(
                f"parameter_map[{name!r}] has no effect without {' and '.join(missing)}. Set it too, or leave {name} out."
            )
            del given[name]
    check_together(given)


def _check_one(row: Option, name: str, value: Any) -> None:
    if row.deprecated:
        _warn(f"parameter_map[{name!r}] is deprecated: {row.deprecated}", DeprecationWarning)
    try:
        check_value(row, value, f"parameter_map[{name!r}].{row.field}")
    except ValueError as error:
        if row.refused:
            raise
        _warn(f"{error} The card does not check it, and may do something else.")


def _plain(attr: Any, row: Option) -> Any:
    value = getattr(attr, str(row.field))
    return value.decode("utf-8", "replace") if row.field == "s" else value


def _warn(text: str, category: Any = UserWarning) -> None:
    warnings.warn(text, category, stacklevel=5)
