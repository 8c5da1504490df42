"""Options for memory: layout, clearing, sharing, copying."""

from __future__ import annotations

from npu_shim.options.domain import any_text, between, matching, one_of
from npu_shim.options.option import ALWAYS, HELD, flag, number, text

_BYTES = matching(r"^\s*\d+(\s*\*\s*\d+)*\s*$", "a count of bytes, like '33285996544' or '31 * 1024 * 1024 * 1024'")

ROWS = (
    number(
        "atomic_clean_policy",
        "Clear the memory of atomic operators together (0) or one by one (1).",
        one_of(0, 1),
        0,
        holder="MemoryConfig",
        write=HELD,
        tf2="memory_config.atomic_clean_policy",
    ),
    number(
        "static_memory_policy",
        "How memory is taken: dynamic (0), static extend, dynamic extend or both.",
        one_of(0, 1, 2, 3, 4),
        0,
        holder="MemoryConfig",
        write=HELD,
        tf2="memory_config.static_memory_policy",
    ),
    text(
        "memory_optimization_policy",
        "Policy name handed to the graph engine.",
        any_text("a policy name"),
        holder="MemoryConfig",
        write=HELD,
        tf2=None,
    ),
    number(
        "variable_use_1g_huge_page",
        "Variables on 1 GB pages: no (0), strictly (1), where possible (2).",
        one_of(0, 1, 2),
        0,
        holder="MemoryConfig",
        write=HELD,
        tf2="memory_config.variable_use_1g_huge_page",
        products="Atlas A2, A3, 950",
        refused=True,
    ),
    flag(
        "external_weight",
        "Write constant weights to files shared by loaded models.",
        False,
        write=ALWAYS,
        cpu="side_output",
    ),
    number(
        "input_fusion_size",
        "Inputs up to this many bytes are copied to the card in one go; 0 turns it off.",
        between(0, 33554432, "bytes"),
        131072,
        write=ALWAYS,
    ),
    flag("input_batch_cpy", "Copy several inputs to the card in one batch.", False, products="Atlas A2, A3, 950"),
    text(
        "graph_memory_max_size",
        "Once the memory limit of a graph.",
        _BYTES,
        numbers_too=True,
        deprecated="It has no effect on current releases; leave it out.",
        tf2_deprecated=False,
    ),
    text(
        "variable_memory_max_size",
        "Once the memory limit of variables.",
        _BYTES,
        numbers_too=True,
        deprecated="It has no effect on current releases; leave it out.",
        tf2_deprecated=False,
    ),
)
