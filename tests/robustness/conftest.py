"""The modules that the tests share, and the fuzz targets, which stand beside their corpus."""

from __future__ import annotations

import pathlib
import sys

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parents[1] / "fuzz")]
