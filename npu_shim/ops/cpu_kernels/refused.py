"""Ops with kernels for GPUs only that have no form for the CPU: creating one raises an error that says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from npu_shim._tensorflow.tf_op_forms import AskedOp

_ONE_DEVICE = "Use one device in each process, and several ranks (npu-shim launch)."
_FOURIER = "TensorFlow 2.6 lacks it, too. Use tf.signal.fft, fft2d or fft3d and their kind."
INSTEAD = {
    "NcclAllReduce": _ONE_DEVICE,
    "NcclBroadcast": _ONE_DEVICE,
    "NcclReduce": _ONE_DEVICE,
    "GenerateBoundingBoxProposals": "Decode the boxes with other ops, and use tf.image.combined_non_max_suppression.",
    "FFTND": _FOURIER,
    "IFFTND": _FOURIER,
    "RFFTND": _FOURIER,
    "IRFFTND": _FOURIER,
}


def raise_for_refused_op(asked: AskedOp) -> NoReturn:
    """Raise the error for an op of INSTEAD."""
    raise NotImplementedError(f"{asked.type} runs on GPUs only. {INSTEAD[asked.type]}")
