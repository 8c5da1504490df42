"""The table of options, which stands beside the fuzz targets."""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fuzz"))
