"""Options for precision: the types in which operators compute."""

from __future__ import annotations

from npu_shim.options.domain import any_text, one_of, path
from npu_shim.options.option import ALWAYS, Fields, flag, number, text

_REPLACED: Fields = dict(deprecated="Use op_precision_mode.", replacement="op_precision_mode", refused=True)

ROWS = (
    text(
        "precision_mode",
        "Which types operators compute in when the network says float32.",
        one_of(
            "force_fp32",
            "allow_fp32_to_fp16",
            "force_fp16",
            "must_keep_origin_dtype",
            "allow_mix_precision",
            "cube_fp16in_fp32out",
            "allow_mix_precision_fp16",
            "allow_mix_precision_bf16",
            "allow_fp32_to_bf16",
        ),
        excludes=("precision_mode_v2",),
        cpu="numeric",
        products="the bf16 modes: Atlas A2, A3, 950",
        refused=True,
    ),
    text(
        "precision_mode_v2",
        "The newer spelling of precision_mode.",
        one_of("fp16", "origin", "cube_fp16in_fp32out", "mixed_float16", "mixed_bfloat16", "cube_hif8", "mixed_hif8"),
        excludes=("precision_mode",),
        cpu="numeric",
        products="mixed_bfloat16: Atlas A2, A3, 950; the hif8 modes: 950, not usable yet",
        refused=True,
    ),
    text(
        "modify_mixlist",
        "File that moves operators between the lists of mixed precision.",
        path("the name of a .json file"),
        content="check_mixlist",
        cpu="numeric",
        refused=True,
    ),
    text(
        "customize_dtypes",
        "File that gives single operators their types.",
        path("the name of a .cfg file"),
        content="check_dtypes",
        cpu="numeric",
    ),
    flag(
        "enable_reduce_precision",
        "Once allowed lower precision; no longer read.",
        session=None,
        estimator=False,
        write=ALWAYS,
        deprecated="It has no effect; leave it out.",
        tf2=None,
    ),
    text(
        "op_precision_mode",
        "File that gives operators high precision or high speed.",
        path("the name of an .ini file"),
        cpu="numeric",
        products="enable_float_32_execution: Atlas A2, A3, 950",
    ),
    text(
        "op_select_implmode",
        "High precision or high speed for the operators of optypelist_for_implmode.",
        one_of("high_precision", "high_performance", "high_precision_for_all", "high_performance_for_all"),
        tf2_allowed=("high_performance", "high_precision"),
        **_REPLACED,
    ),
    text(
        "optypelist_for_implmode",
        "The operators op_select_implmode is for.",
        any_text("operator types separated by commas"),
        requires=("op_select_implmode",),
        **_REPLACED,
    ),
    flag("is_tailing_optimization", "Overlap the update with the tail of the backward pass.", False, write=ALWAYS),
    number(
        "enable_small_channel",
        "Faster convolutions with few channels.",
        one_of(0, 1),
        0,
        write=ALWAYS,
        tf2_default=False,
        tf2_allowed=(True, False),
    ),
    text("quant_dumpable", "Keep the tensors of a quantised graph for dumping.", one_of("0", "1")),
)
