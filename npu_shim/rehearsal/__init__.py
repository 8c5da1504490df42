"""Rehearse a migration: run a script and its migrated form on the CPU, and examine what they compute.

``npu_shim.rehearsal.compare(f, g, inputs)`` finds the first op whose output departs in two graphs, functions or models.
``npu_shim.rehearsal.half_precision()`` rounds the ops of the mixed-precision list to 16 bits.
``npu_shim.rehearsal.watch_numerics()`` names the first op with Inf or NaN, and records loss scale and gradient norms.
"""

from __future__ import annotations

from npu_shim._host.lazy_names import lazy_names

__all__ = ["compare", "half_precision", "watch_numerics"]
_NAMES = {
    "npu_shim.rehearsal.op_comparison.compare": "compare",
    "npu_shim.rehearsal.half.half_precision": "half_precision",
    "npu_shim.rehearsal.numerics.numerics_watch": "watch_numerics",
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
