"""Names of the vendor's interface that exist on the NPU only: the one list of them, for errors, tests and docs.

Each can be imported. A call raises OnlyOnNPU: what it does, why there is no form for the CPU, what to do.
"""

from __future__ import annotations

import inspect
from typing import Callable, NamedTuple, NoReturn

ONLY_ON_NPU = "exists on the NPU only"


class OnlyOnNPU(NotImplementedError):
    """Raised when a script calls a name of the vendor's interface that has no form for the CPU."""


class Row(NamedTuple):
    """One name: what it does, and which reason below applies."""

    what: str
    reason: str
    instead: str


_UNPUBLISHED = "Its algorithm is not published"
_COMPILED = "It runs what was compiled for the NPU"
_CHANNEL = "The CPU has no data channel to a device"
_CV2 = "Write it with OpenCV in tf.numpy_function"
_ITERATOR = "Use the iterator of a tf.data.Dataset"
_KERNELS = "Call the TensorFlow function itself"

# operator -> its row; npu_ops and npu_cpu_ops have functions of the same names for some
ROWS: dict[str, Row] = {
    "adp_get_next": Row("gets the next element from a queue of the NPU", _CHANNEL, _ITERATOR),
    "batch_dilate_polys": Row("widens polygons around text", _UNPUBLISHED, _CV2),
    "channel_get_next": Row("gets the next element from a channel of the NPU", _CHANNEL, _ITERATOR),
    "device_queue_dataset": Row("is the NPU's end of a data channel", _CHANNEL, "Use the tf.data.Dataset itself"),
    "dp_group_dataset": Row("groups datasets for the NPU", _CHANNEL, "Use tf.data.Dataset.zip"),
    "dpop": Row("runs a function of a dataset on the NPU", _COMPILED, _KERNELS),
    "dynamic_get_next_v2": Row("gets the next element of any shape from a channel of the NPU", _CHANNEL, _ITERATOR),
    "ge_op": Row("runs a graph on the NPU", _COMPILED, _KERNELS),
    "geop_dataset": Row("runs a function of a dataset on the NPU", _COMPILED, "Use tf.data.Dataset.map"),
    "get_next": Row("gets the next element from a channel of the NPU", _CHANNEL, _ITERATOR),
    "get_next_from_queue": Row("takes tensors apart that came from a queue of the NPU", _CHANNEL, _ITERATOR),
    "host_queue_dataset": Row("sends a dataset to the NPU", _CHANNEL, "Use the tf.data.Dataset itself"),
    "load_and_execute_om": Row(
        "runs a model in the NPU's format", _COMPILED, "Run the TensorFlow model that it was made from"
    ),
    "npu_onnx_graph_op": Row(
        "runs an ONNX model on the NPU", _COMPILED, "Run it with onnxruntime in tf.numpy_function"
    ),
    "ocr_detection_post_handle": Row("cuts text out of an image", _UNPUBLISHED, _CV2),
    "ocr_detection_pre_handle": Row("prepares an image for text detection", _UNPUBLISHED, _CV2),
    "ocr_find_contours": Row("finds the outlines of text", _UNPUBLISHED, _CV2),
    "ocr_identify_pre_handle": Row("prepares images of text for classification", _UNPUBLISHED, _CV2),
    "ocr_recognition_pre_handle": Row("prepares images of text for recognition", _UNPUBLISHED, _CV2),
    "queue_data": Row("is one tensor of an element in a queue of the NPU", _CHANNEL, _ITERATOR),
    "queue_dataset": Row("sends a dataset to the NPU", _CHANNEL, "Use the tf.data.Dataset itself"),
    "resize_and_clip_polys": Row("resizes polygons around text", _UNPUBLISHED, _CV2),
}

# Functions of the vendor's modules and their parameters
SIGNATURES: dict[str, dict[str, str]] = {
    "npu_ops": {
        "npu_onnx_graph_op": "(inputs, tout, model_path, name=None)",
        "channel_get_next": "(channel_name, output_types, output_shapes)",
    },
    "npu_cpu_ops": {
        "ocr_recognition_pre_handle": (
            "(imgs_data, imgs_offset, imgs_size, langs, langs_score, batch_size=8, data_format='NHWC', "
            "pad_mode='REPLICATE')"
        ),
        "ocr_detection_pre_handle": "(img, data_format='NHWC')",
        "ocr_identify_pre_handle": "(imgs_data, imgs_offset, imgs_size, size, data_format='NHWC')",
        "batch_dilate_polys": (
            "(polys_data, polys_offset, polys_size, score, min_border, min_area_thr, score_thr, expand_scale)"
        ),
        "ocr_find_contours": "(img, value_mode=0)",
        "ocr_detection_post_handle": "(img, polys_data, polys_offset, polys_size, data_format='NHWC')",
        "resize_and_clip_polys": "(polys_data, polys_offset, polys_size, h_scale, w_scale, img_h, img_w)",
    },
}
NOT_OPERATORS = ("channel_get_next",)


def message(owner: str, name: str) -> str:
    """Return the text of the error of a name, which scripts call as owner.name."""
    row = ROWS[name]
    return f"{owner}.{name} {ONLY_ON_NPU}: it {row.what}. {row.reason}. {row.instead}."


def function(module: str, name: str) -> Callable[..., NoReturn]:
    """Return a function of a module of SIGNATURES that raises OnlyOnNPU."""
    return raising(module, name, SIGNATURES[module][name])


def raising(owner: str, name: str, signature: str = "(*args, **kwargs)") -> Callable[..., NoReturn]:
    """Return a function that raises OnlyOnNPU when it is called, so that a script which only imports the name runs.

    Args:
        owner: how scripts call the module, for messages.
        name: a name of ROWS.
        signature: its parameters as source, for example ``"(x, name=None)"``.
    """

    def only_on_npu(*args: object, **kwargs: object) -> NoReturn:
        raise OnlyOnNPU(message(owner, name))

    only_on_npu.__doc__ = message(owner, name)
    only_on_npu.__signature__ = _parse(signature)  # type: ignore[attr-defined]
    return only_on_npu


def markdown() -> str:
    """Return the list as a table for the docs."""
    lines = ["| name | what it does | why it has no form for the CPU | instead |", "| --- | --- | --- | --- |"]
    for name, row in sorted(ROWS.items()):
        where = [module for module, names in SIGNATURES.items() if name in names]
        where += [] if name in NOT_OPERATORS else ["npu.gen_npu_ops"]
        lines.append(f"| `{name}` ({', '.join(where)}) | {row.what} | {row.reason} | {row.instead} |")
    return "\n".join(lines) + "\n"


def _parse(signature: str) -> inspect.Signature:
    import inspect

    scope: dict[str, Callable[..., object]] = {}
    exec(f"def f{signature}: pass", scope)  # signatures are literals of this package
    return inspect.signature(scope["f"])
