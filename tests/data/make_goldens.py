"""Makes parameter_map_goldens.json from a record of calls of the vendor's NPURunConfig.

    python tests/data/make_goldens.py RECORD.json

RECORD.json has ``meta.default`` (the NpuOptimizer entry of a call without arguments) and ``cases``,
each with ``kwargs`` and either ``differs`` and ``absent`` (against the default) or ``error``. What is
written has one call a line, without the vendor's texts: only the class of its error matters.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def goldens(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls, the one without arguments first."""
    (entry,) = record["meta"]["default"]["custom_optimizers"]
    calls: list[dict[str, Any]] = [{"kwargs": {}, "map": entry["parameter_map"]}]
    for case in record["cases"]:
        call = {"kwargs": case["kwargs"]}
        if "error" in case:
            call["error"] = case["error"][0]
        else:
            call["map"] = {key: value for key, value in case["differs"].items()}
            call["without"] = case["absent"]
        calls.append(call)
    return calls


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        calls = goldens(json.load(file))
    out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "parameter_map_goldens.json")
    with open(out, "w", encoding="utf-8") as file:
        lines = ",\n".join(json.dumps(call, sort_keys=True) for call in calls)
        file.write(f"[\n{lines}\n]\n")
    print(f"{out}: {len(calls)} calls")


if __name__ == "__main__":
    main()
