"""The forms by the type of op, and when they are in use."""

from __future__ import annotations

from npu_shim._host import host_device, patches
from npu_shim._tensorflow import tf_op_creation
from npu_shim._tensorflow.tf_op_forms import Form
from npu_shim.cpu_kernels import convolution, layout

FORMS: dict[str, Form] = {
    **dict.fromkeys(layout.LAYOUTS, layout.channels_last),
    **dict.fromkeys([*convolution.OF_INPUT, *convolution.OF_FILTER], convolution.gradient),
    **dict.fromkeys(convolution.OF_INPUT.values(), convolution.convolution),
}
# They compute nothing that the CPU does not; they keep transposes out of a chain of ops.
FORMS_IN_GRAPHS: dict[str, Form] = dict.fromkeys(layout.ELEMENTWISE, layout.elementwise)


def use() -> None:
    """Compute ops in these forms from now on, until patches.restore_all(). On a card, do nothing."""
    if host_device.look().is_npu:
        return
    tf_op_creation.use_forms(FORMS, FORMS_IN_GRAPHS)
    patches.undo_with(tf_op_creation.drop_forms)
