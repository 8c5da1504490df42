"""Writes vendor_figures.json: the figures that the vendor's own comparison gives, in an environment that has it.

pip install mindstudio-probe
PYTHONPATH=. python -m tests.dumps.make_vendor_figures
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pathlib
import sys
from typing import Any

import numpy as np

from tests.dumps.vendor_cases import pairs

FILE = pathlib.Path(__file__).with_name("vendor_figures.json")


def vendor_folder() -> str:
    """Return the folder of the vendor's comparison."""
    found = importlib.util.find_spec("msprobe")
    assert found and found.submodule_search_locations, "pip install mindstudio-probe"
    return os.path.join(list(found.submodule_search_locations)[0], "msaccucmp")


def figures() -> dict[str, dict[str, str]]:
    """Return the vendor's figures of all pairs, with all digits, by pair and algorithm."""
    sys.path.insert(0, vendor_folder())
    manager: Any = importlib.import_module("algorithm_manager.algorithm_manager")
    utils: Any = importlib.import_module("cmp_utils.utils")
    utils.format_value = lambda value: repr(float(value))  # the tool prints six decimals
    made: dict[str, dict[str, str]] = {}
    compare = manager.AlgorithmManager("", "all", "")
    for name, (device, reference) in pairs().items():
        shape = utils.get_shape_type(device.shape)
        arguments = {"my_output_dump_file": "device", "ground_truth_dump_file": "reference", "shape_type": shape}
        values, _ = compare.compare(np.copy(device).flatten(), np.copy(reference).flatten(), arguments)
        made[name] = dict(zip(compare.get_result_title(), values))
    return made


if __name__ == "__main__":
    FILE.write_text(json.dumps(figures(), indent=1) + "\n", encoding="utf-8")
