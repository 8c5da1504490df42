"""Makes the goldens of options from records of runs of the vendor's classes.

    python tests/data/make_goldens.py CALLS.json ASSIGNMENTS.json

CALLS.json has ``meta.default`` (the NpuOptimizer entry of a call of NPURunConfig without arguments) and ``cases``,
each with ``kwargs`` and either ``differs`` and ``absent`` (against the default) or ``error``. ASSIGNMENTS.json has
``meta.defaults`` (the options of the classes for TensorFlow 2) and ``cases``, each with ``of`` (the class), ``sets``
(paths and values in their order) and the same results. The goldens, parameter_map_goldens.json and
npu_config_goldens.json, have one case a line, without the vendor's texts: only the class of its error matters.
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


def assignments(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The assignments, those of no option first."""
    none = [{"of": name, "sets": [], "differs": options} for name, options in record["meta"]["defaults"].items()]
    return none + record["cases"]


def main() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    makers = {"parameter_map_goldens.json": goldens, "npu_config_goldens.json": assignments}
    for path, (name, make) in zip(sys.argv[1:], makers.items()):
        with open(path, encoding="utf-8") as file:
            cases = make(json.load(file))
        with open(os.path.join(here, name), "w", encoding="utf-8") as file:
            lines = ",\n".join(json.dumps(case, sort_keys=True) for case in cases)
            file.write(f"[\n{lines}\n]\n")
        print(f"{name}: {len(cases)} cases")


if __name__ == "__main__":
    main()
