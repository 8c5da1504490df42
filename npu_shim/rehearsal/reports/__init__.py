"""Reports of ``npu-shim verify``: text, JSON, JUnit XML and one HTML page. Each is made from the result alone."""

from __future__ import annotations

import json
import os
from typing import Callable, Mapping, TypeVar

import npu_shim
from npu_shim._tensorflow.types import JsonObject
from npu_shim.rehearsal.reports.junit import to_junit
from npu_shim.rehearsal.reports.text import to_text
from npu_shim.rehearsal.reports.verify_page import to_html
from npu_shim.rehearsal.result import Result

_Result = TypeVar("_Result")


def to_json(result: JsonObject) -> str:
    """Return a result that has no Inf and NaN as JSON that ends with a line feed."""
    return json.dumps(result, indent=1, allow_nan=False) + "\n"


def report_head(tool: str) -> JsonObject:
    """Return what the JSON of a tool begins with."""
    return {"schema_version": 1, "tool": f"npu-shim {tool}", "tool_version": npu_shim.__version__}


WRITERS: Mapping[str, Callable[[Result], str]] = {
    "verify.txt": to_text,
    "verify.json": lambda result: json.dumps(result.to_json(), indent=2) + "\n",
    "verify.xml": to_junit,
    "verify.html": to_html,
}


def write_reports(result: _Result, folder: str, writers: Mapping[str, Callable[[_Result], str]]) -> list[str]:
    """Write all reports to a folder.

    Args:
        result: of a command.
        folder: is made if it is missing.
        writers: by file name.
    Returns:
        Their paths.
    """
    os.makedirs(folder, exist_ok=True)
    paths = []
    for name, make in writers.items():
        paths.append(os.path.join(folder, name))
        with open(paths[-1], "w", encoding="utf-8", newline="") as file:
            file.write(make(result))
    return paths
