"""Options that only the vendor's package for TF 2 has, as attributes of its global options."""

from __future__ import annotations

from npu_shim.options.domain import Domain, one_of
from npu_shim.options.option import NEVER, Option

ROWS = (
    Option(
        "overflow_flag",
        None,
        "Keep a flag that says whether numbers overflowed.",
        one_of(0, 1),
        argument=None,
        write=NEVER,
        tf2_default=1,
    ),
    Option(
        "execute_times",
        None,
        "How often a graph may run; -1 sets no limit.",
        Domain("a number", lambda v: True),
        argument=None,
        write=NEVER,
        tf2_default=-1,
    ),
)
