"""Reports of ``npu-shim dumps``: text, JSON, the vendor's CSV and one HTML page. Each is made from the result alone."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from npu_shim.dumps.reports.page import to_html
from npu_shim.dumps.reports.table import to_csv
from npu_shim.dumps.reports.text import to_text

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject

WRITERS = {
    "dumps.txt": lambda result: to_text(result, all_rows=True),
    "dumps.json": lambda result: json.dumps(result, indent=1, allow_nan=False) + "\n",
    "dumps.csv": to_csv,
    "dumps.html": to_html,
}


def write_all(result: JsonObject, folder: str) -> list[str]:
    """Write all reports of a comparison to a folder.

    Returns:
        Their paths.
    """
    os.makedirs(folder, exist_ok=True)
    paths = []
    for name, make in WRITERS.items():
        paths.append(os.path.join(folder, name))
        with open(paths[-1], "w", encoding="utf-8", newline="") as stream:
            stream.write(make(result))
    return paths
