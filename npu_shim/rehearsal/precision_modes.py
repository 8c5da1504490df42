"""The values of precision_mode and precision_mode_v2, by what becomes of float32."""

from __future__ import annotations

MIXED, LOWERED, FORCED = "allow_mix_precision", "allow_fp32_to_fp16", "force_fp16"
MATRIX_INPUTS = "cube_fp16in_fp32out"
# Those that half precision in a run on the CPU has, the default first.
REHEARSED = (MIXED, LOWERED, FORCED, MATRIX_INPUTS)
ALL_MIXED = frozenset(
    {MIXED, "allow_mix_precision_fp16", "allow_mix_precision_bf16", "mixed_float16", "mixed_bfloat16"}
)
ALL_FORCED = frozenset({FORCED, "fp16"})
ALL_LOWERED = frozenset({LOWERED, "allow_fp32_to_bf16", MATRIX_INPUTS, "force_fp32"})  # the matrix unit alone
