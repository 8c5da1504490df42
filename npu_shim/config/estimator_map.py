"""The parameter_map that NPUEstimator writes, computed from the arguments of the run config."""

from __future__ import annotations

import json
from typing import Collection, Mapping

from npu_shim._tensorflow.types import OptionValue
from npu_shim.options import option as o
from npu_shim.options.table import KEYS, TABLE, options_by_argument

Arguments = Mapping[str, OptionValue]  # of NPURunConfig, by name


def estimator_options(values: Arguments, tf_config: str | None = None) -> dict[str, OptionValue]:
    """Return the options of an estimator job.

    Args:
        values: NPURunConfig's arguments by name.
        tf_config: content of the variable TF_CONFIG, for job and task_index.
    Returns:
        parameter_map key to value. Some rows are written with their default. A
        switch that is off is omitted if an option that it excludes is given,
        because the vendor's C++ refuses a map with both.
    """
    config_objects = _config_objects_by_class_name(values)
    written: dict[str, OptionValue] = {}
    for row in KEYS.values():
        if row.write == o.FORCED:
            written[row.name] = row.estimator
        else:
            value = _value_to_write(row, values, config_objects)
            if value is not None:
                written[row.name] = value
    task = json.loads(tf_config or "{}").get("task", {})
    written["job"] = task.get("type", written["job"])
    written["task_index"] = int(task.get("index", written["task_index"]))
    for name in [n for n, v in written.items() if v is False]:
        if any(written.get(other) not in (None, False) for other in KEYS[name].excludes):
            del written[name]
    return written


def given_options(values: Arguments, names: Collection[str]) -> dict[str, OptionValue]:
    """Return the options that the user gave, by key, for the check of combinations."""
    config_objects = _config_objects_by_class_name(values)
    given = {
        row.name: values[arg]
        for arg, row in options_by_argument(None).items()
        if row.field and arg in names and arg in values
    }
    for row in TABLE:
        if row.holder in config_objects and row.name in KEYS:
            given[row.name] = getattr(config_objects[row.holder], row.arg or "")
    return {name: value for name, value in given.items() if value is not None}


def _config_objects_by_class_name(values: Arguments) -> dict[str, OptionValue]:
    """Return the config objects by class name, including nested ones."""
    by_class: dict[str, OptionValue] = {}
    waiting = [value for value in values.values() if hasattr(type(value), "__signature__") and value is not None]
    while waiting:
        one = waiting.pop()
        by_class[type(one).__name__] = one
        for arg, row in options_by_argument(type(one).__name__).items():
            if row.holds is not None and getattr(one, arg) is not None:
                waiting.append(getattr(one, arg))
    return by_class


def _value_to_write(row: o.Option, values: Arguments, config_objects: Mapping[str, OptionValue]) -> OptionValue | None:
    """Return the value to write, None to omit the option."""
    if row.write == o.NEVER or row.arg is None:
        return None
    if row.holder is not None and row.holder not in config_objects:
        return row.estimator if row.write == o.ALWAYS else None
    source = config_objects[row.holder] if row.holder else None
    value = values[row.arg] if source is None else getattr(source, row.arg)
    if row.write == o.WITH_AOE:
        if values["aoe_mode"] is None:
            return None
        return row.session if value is None else value
    if row.write == o.WITH_PROFILING:
        return (value or "") if source is not None and source.enable_profiling else None
    if row.write == o.HELD_TOGETHER:
        together = [getattr(source, arg) for arg in options_by_argument(row.holder)]
        return None if None in together else value
    return value
