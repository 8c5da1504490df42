"""Reads and writes the parameter_map of an NpuOptimizer entry, field by field as the vendor's C++ does."""
from __future__ import annotations

from typing import Any, Dict, List

from npu_shim.options.near import closest
from npu_shim.options.table import KEYS, find

NPU_OPTIMIZER = "NpuOptimizer"


def write(entry: Any, values: Dict[str, Any]) -> None:
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


def read(entry: Any) -> Dict[str, Any]:
    """The known options of an entry that stand in their right field."""
    found = {}
    for name, attr in entry.parameter_map.items():
        row = find(name)
        if row is not None and attr.WhichOneof("value") == row.field:
            value = getattr(attr, str(row.field))
            found[name] = value.decode("utf-8", "replace") if row.field == "s" else value
    return found


def problems(entry: Any) -> List[str]:
    """What is wrong with a map filled by hand; the vendor's C++ would pass over most of it in silence."""
    texts = []
    for name, attr in sorted(entry.parameter_map.items()):
        row, field = find(name), attr.WhichOneof("value")
        if row is None:
            texts.append(f"parameter_map[{name!r}] is no NPU option and has no effect.{closest(name, KEYS)}")
        elif field != row.field:
            texts.append(
                f"parameter_map[{name!r}] is set in field {field or '(none)'}, but is read from field {row.field}, so "
                f"the value is lost: write parameter_map[{name!r}].{row.field} = ... ({row.allowed.text})."
            )
    return texts
