"""The extensions of the files that the tool converts."""

from __future__ import annotations

NOTEBOOK = ".ipynb"
CONVERTED = ".py", ".pyw", NOTEBOOK
