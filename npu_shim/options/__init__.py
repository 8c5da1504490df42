"""The NPU options: one row each, in files by topic, with lookups and checks over the rows."""

from __future__ import annotations

from npu_shim.options.check import check_session_options, check_together, check_value
from npu_shim.options.option import Option
from npu_shim.options.table import KEYS, TABLE, arguments_of, find, signature_of

__all__ = [
    "KEYS",
    "Option",
    "TABLE",
    "arguments_of",
    "check_session_options",
    "check_together",
    "check_value",
    "find",
    "signature_of",
]
