"""Reports of ``npu-shim dumps``: text, JSON, the vendor's CSV and one HTML page. Each is made from the result alone."""

from __future__ import annotations

from typing import Callable, Mapping

from npu_shim.dumps.comparison_result import DumpComparison
from npu_shim.dumps.reports.comparison_page import to_html
from npu_shim.dumps.reports.comparison_text import to_text
from npu_shim.dumps.reports.vendor_table import to_csv
from npu_shim.rehearsal.reports import to_json

WRITERS: Mapping[str, Callable[[DumpComparison], str]] = {
    "dumps.txt": lambda result: to_text(result, all_rows=True),
    "dumps.json": lambda result: to_json(result.to_json()),
    "dumps.csv": to_csv,
    "dumps.html": to_html,
}
