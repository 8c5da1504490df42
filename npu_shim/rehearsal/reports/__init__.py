"""Reports of ``npu-shim verify``: text, JSON, JUnit XML and one HTML page. Each is made from the result alone."""

from __future__ import annotations

import json
import os

from npu_shim.rehearsal.reports.junit import to_junit
from npu_shim.rehearsal.reports.page import to_html
from npu_shim.rehearsal.reports.text import to_text
from npu_shim.rehearsal.result import Result

WRITERS = {
    "verify.txt": to_text,
    "verify.json": lambda result: json.dumps(result, indent=2) + "\n",
    "verify.xml": to_junit,
    "verify.html": to_html,
}


def write_all(result: Result, folder: str) -> list[str]:
    """Write all reports to a folder.

    Returns:
        Their paths.
    """
    os.makedirs(folder, exist_ok=True)
    paths = []
    for name, make in WRITERS.items():
        paths.append(os.path.join(folder, name))
        with open(paths[-1], "w", encoding="utf-8") as file:
            file.write(make(result))
    return paths
