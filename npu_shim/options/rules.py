"""Rules between options that the columns ``excludes`` and ``requires`` of the rows cannot express."""

from __future__ import annotations

from typing import Callable, Mapping, NamedTuple

from npu_shim._tensorflow.types import OptionValue

_MIXED = {
    "precision_mode": ("allow_mix_precision", "allow_mix_precision_fp16", "allow_mix_precision_bf16"),
    "precision_mode_v2": ("mixed_float16", "mixed_bfloat16", "mixed_hif8"),
}


class Rule(NamedTuple):
    """``broken`` returns True for options that break the rule. ``text`` is the message with the fix."""

    broken: Callable[[Mapping[str, OptionValue]], bool]
    text: str


def _mixlist_without_mixed_precision(given: Mapping[str, OptionValue]) -> bool:
    return "modify_mixlist" in given and not any(given.get(key) in modes for key, modes in _MIXED.items())


RULES: tuple[Rule, ...] = (
    Rule(
        lambda o: o.get("mix_compile_mode") is True and o.get("iterations_per_loop", 1) > 1,
        "mix_compile_mode=True and iterations_per_loop greater than 1 exclude each other, because a loop on the device "
        "has no operators on the host. Set iterations_per_loop=1 or mix_compile_mode=False.",
    ),
    Rule(
        lambda o: o.get("dynamic_graph_execute_mode") == "lazy_recompile" and o.get("iterations_per_loop", 1) > 1,
        "dynamic_graph_execute_mode='lazy_recompile' and iterations_per_loop greater than 1 exclude each other. Set "
        "iterations_per_loop=1 or dynamic_graph_execute_mode='dynamic_execute'.",
    ),
    Rule(
        lambda o: o.get("mix_compile_mode") is True and "input_shape" in o,
        "mix_compile_mode=True and input_shape exclude each other, because profiles need the whole graph on the NPU. "
        "Set mix_compile_mode=False, or remove the dynamic input options.",
    ),
    Rule(
        lambda o: o.get("compile_dynamic_mode") is True and o.get("dynamic_input") is True,
        "compile_dynamic_mode=True and dynamic_input=True exclude each other. Remove dynamic_input.",
    ),
    Rule(
        lambda o: o.get("compile_hybrid_mode") == 1 and o.get("dynamic_node_type") != 1,
        "compile_hybrid_mode=1 needs dynamic_node_type=1 (placeholders). Set it, or compile_hybrid_mode=0.",
    ),
    Rule(
        _mixlist_without_mixed_precision,
        "modify_mixlist needs mixed precision. Set precision_mode='allow_mix_precision' (or _fp16, _bf16), or "
        "precision_mode_v2='mixed_float16' (or 'mixed_bfloat16', 'mixed_hif8').",
    ),
    Rule(
        lambda o: o.get("enable_dump") is True and o.get("enable_dump_debug") is True,
        "enable_dump=True and enable_dump_debug=True exclude each other. Remove enable_dump to dump only overflows, "
        "or enable_dump_debug to dump the tensors of some steps.",
    ),
    Rule(
        lambda o: o.get("in_out_pair") is not None and o.get("mix_compile_mode") is not True,
        "in_out_pair needs mix_compile_mode=True, because otherwise the whole graph is offloaded. Set it.",
    ),
)
