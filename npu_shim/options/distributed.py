"""Options for collective communication and time limits."""

from __future__ import annotations

from npu_shim.options.domain import INT32_MAX, any_text, at_least, between
from npu_shim.options.option import ALWAYS, flag, number, text

ROWS = (
    flag("hcom_parallel", "Let gradients travel while the backward pass still runs.", True, write=ALWAYS),
    flag(
        "hcom_multi_mode",
        "Several communication modes at the same time.",
        False,
        write=ALWAYS,
        tf2_default=None,
        tf2_allowed=None,
    ),
    text("HCCL_algorithm", "Algorithm of the collectives.", any_text("an algorithm name"), tf2=None),
    number(
        "hccl_timeout",
        "Longest wait of a collective, in seconds; 0 waits for ever on newer cards.",
        between(0, INT32_MAX, "seconds"),
        cpu="distributed",
        tf2=None,
    ),
    number("op_wait_timeout", "Longest wait of an operator for its input, in seconds.", at_least(0), tf2=None),
    number("op_execute_timeout", "Longest run of an operator, in seconds.", at_least(0), tf2=None),
    number(
        "stream_sync_timeout",
        "Longest wait for a stream, in milliseconds; -1 waits for ever.",
        at_least(-1),
        -1,
        write=ALWAYS,
    ),
    number(
        "event_sync_timeout",
        "Longest wait for an event, in milliseconds; -1 waits for ever.",
        at_least(-1),
        -1,
        write=ALWAYS,
    ),
    number(
        "graph_exec_timeout",
        "Longest run of a graph, in milliseconds.",
        at_least(-1),
        session=600000,
        estimator=None,
        argument=None,
        tf2_default=None,
    ),
)
