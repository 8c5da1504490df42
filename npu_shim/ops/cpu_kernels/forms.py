"""The forms by the type of op, and when they are in use."""

from __future__ import annotations

from typing import Callable, Mapping, Sequence

from npu_shim._host import host_device
from npu_shim._tensorflow import patches, tf_devices, tf_op_creation
from npu_shim._tensorflow.tf_op_forms import AskedOp, Chooser, Form
from npu_shim._tensorflow.types import Tensor
from npu_shim.ops.cpu_kernels import convolution, cudnn_rnn, halves, layout, others, refused

CHOOSERS: dict[str, Chooser] = {
    **dict.fromkeys(layout.LAYOUTS, layout.channels_last_form),
    **dict.fromkeys([*convolution.OF_INPUT, *convolution.OF_FILTER], convolution.convolution_gradient_form),
    **dict.fromkeys(convolution.OF_INPUT.values(), convolution.convolution_form),
    **dict.fromkeys(["CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"], cudnn_rnn.rnn_form),
    **dict.fromkeys(["CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3"], cudnn_rnn.rnn_gradient_form),
    **dict.fromkeys(["CudnnRNNCanonicalToParams", "CudnnRNNCanonicalToParamsV2"], cudnn_rnn.canonical_to_params_form),
    **dict.fromkeys(["CudnnRNNParamsToCanonical", "CudnnRNNParamsToCanonicalV2"], cudnn_rnn.params_to_canonical_form),
    "CudnnRNNParamsSize": cudnn_rnn.params_size_form,
    **dict.fromkeys(others.LATER_NAMES, others.later_op_form),
    **dict.fromkeys(others.BYTES, others.zero_bytes_form),
    "CTCLossV2": others.ctc_loss_form,
    "MaxPoolGradGradWithArgmax": others.max_pool_second_gradient_form,
    **dict.fromkeys(refused.INSTEAD, refused.raise_for_refused_op),
}
# They compute nothing that the CPU does not; they keep transposes out of a chain of ops.
CHOOSERS_IN_GRAPHS: dict[str, Chooser] = dict.fromkeys(layout.ELEMENTWISE, layout.elementwise_form)


def use_cpu_forms() -> None:
    """Compute ops in these forms from now on, until patches.restore_all(). On a card, do nothing.

    Graphs that name a GPU which TensorFlow lacks name the CPU.
    """
    if host_device.detect_without_import().is_npu:
        return
    forms = halves.forms_for_half_types()
    _add_forms(forms, CHOOSERS)
    in_graphs = {op_type: forms[op_type] for op_type in set(forms) & set(CHOOSERS_IN_GRAPHS)}
    _add_forms(in_graphs, CHOOSERS_IN_GRAPHS)
    tf_op_creation.use_forms(forms, in_graphs)
    patches.register_undo(tf_op_creation.drop_forms)
    tf_devices.patch_device_scopes_of_graphs()


def _add_forms(forms: dict[str, Form], choosers: Mapping[str, Chooser]) -> None:
    """Add forms; where an op has one already, its own comes first."""
    for op_type, choose in choosers.items():
        known = forms.get(op_type)
        forms[op_type] = Form(choose if known is None else _first_applicable(known.choose, choose))


def _first_applicable(*choosers: Chooser) -> Chooser:
    def choose(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
        return next((chosen for chosen in (chooser(asked) for chooser in choosers) if chosen is not None), None)

    return choose
