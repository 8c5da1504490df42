"""The parameter_map of an NpuOptimizer entry: read, write and check it, field by field as the vendor's C++ does."""

from __future__ import annotations

import warnings

from npu_shim._tensorflow.types import ConfigProto, CustomOptimizer, Message, OptionValue
from npu_shim.options.check import check_combinations, checked_value
from npu_shim.options.near import did_you_mean
from npu_shim.options.option import Option
from npu_shim.options.table import KEYS, find_option

NPU_OPTIMIZER = "NpuOptimizer"
# Parameters of npu_shim itself, for sessions on the CPU; see graph_passes. The vendor's C++ skips them.
CPU_REMAPPING = "npu_shim_cpu_remapping"
CPU_MEMORY_OPTIMIZATION = "npu_shim_cpu_memory_optimization"
_OWN = (CPU_REMAPPING, CPU_MEMORY_OPTIMIZATION)


def find_entry(config: ConfigProto | None) -> CustomOptimizer | None:
    """Return the first NpuOptimizer entry of a tf.compat.v1.ConfigProto, None if it has none."""
    entries = () if config is None else config.graph_options.rewrite_options.custom_optimizers
    return next((entry for entry in entries if entry.name == NPU_OPTIMIZER), None)


def write_options(entry: CustomOptimizer, values: dict[str, OptionValue]) -> None:
    """Write checked values into ``entry.parameter_map``.

    Args:
        entry: a RewriterConfig.CustomGraphOptimizer.
        values: parameter_map key to bool, int or str.
    """
    for name, value in values.items():
        attr = entry.parameter_map[name]
        attr.Clear()
        field = str(KEYS[name].field)
        setattr(attr, field, value.encode("utf-8") if field == "s" else value)


def read_options(entry: CustomOptimizer) -> dict[str, OptionValue]:
    """Return the known options of an entry whose values are in the right field."""
    options = {}
    for name, attr in sorted(entry.parameter_map.items()):
        row = find_option(name)
        if row is not None and attr.WhichOneof("value") == row.field:
            options[name] = _python_value(attr, row)
    return options


def check_entry(entry: CustomOptimizer) -> None:
    """Check a map that a script may have filled by hand.

    A value that the NPU refuses is an error. A value that it ignores or clamps,
    and a deprecated one, is a warning.

    Args:
        entry: a RewriterConfig.CustomGraphOptimizer.
    Raises:
        ValueError: if the NPU refuses a value, or options contradict each other.
    """
    for name, attr in sorted(entry.parameter_map.items()):
        if name in _OWN:
            continue
        row, field = find_option(name), attr.WhichOneof("value")
        if row is None:
            _warn(f"parameter_map[{name!r}] is not an NPU option and has no effect.{did_you_mean(name, KEYS)}")
        elif field != row.field:
            text = (
                f"parameter_map[{name!r}] is set in field {field or '(none)'}, but the NPU reads field {row.field}. "
                f"Write parameter_map[{name!r}].{row.field} = ... ({row.allowed.text})."
            )
            if row.refused and row.field == "s":  # the NPU reads an empty string, which it refuses
                raise ValueError(text)
            _warn(text)
        else:
            _check_option(row, name, _python_value(attr, row))
    given = read_options(entry)
    for name in [name for name in given if not KEYS[name].refused]:
        missing = [other for other in KEYS[name].requires if other not in given]
        if missing:
            _warn(
                f"parameter_map[{name!r}] has no effect without {' and '.join(missing)}. Set it too, or remove {name}."
            )
            del given[name]
    check_combinations(given)


def _check_option(row: Option, name: str, value: OptionValue) -> None:
    if row.deprecated:
        _warn(f"parameter_map[{name!r}] is deprecated: {row.deprecated}", DeprecationWarning)
    try:
        checked_value(row, value, f"parameter_map[{name!r}].{row.field}")
    except ValueError as error:
        if row.refused:
            raise
        _warn(f"{error} The NPU does not check this value.")


def _python_value(attr: Message, row: Option) -> OptionValue:
    value = getattr(attr, str(row.field))
    return value.decode("utf-8", "replace") if row.field == "s" else value


def _warn(text: str, category: type[Warning] = UserWarning) -> None:
    warnings.warn(text, category, stacklevel=5)
