"""By what the names of files end that the tool converts."""

from __future__ import annotations

NOTEBOOK = ".ipynb"
CONVERTED = ".py", ".pyw", NOTEBOOK
