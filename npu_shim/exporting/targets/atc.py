"""A frozen graph for the vendor's converter, and the command that converts it."""

from __future__ import annotations

import pathlib
import shlex
from argparse import Namespace

from npu_shim._tensorflow import tf_capture
from npu_shim.exporting.graph_defs import ExportError, attribute_or_default, split_tensor_name
from npu_shim.exporting.inference_model import Model
from npu_shim.exporting.proof import Values
from npu_shim.exporting.targets import Written, check_ports, fill_template, tensorflow
from npu_shim.import_hook import tool
from npu_shim.rehearsal.assess import operators
from npu_shim.rehearsal.assess.operators import Lists

_LAYOUTS = ("Conv2D", "DepthwiseConv2dNative", "MaxPool", "AvgPool", "Conv3D", "MaxPool3D", "AvgPool3D")
_GIVEN = ("Const", "Placeholder")


def write(model: Model, options: Namespace, values: Values) -> Written:
    """Write the graph, its names, NAME.atc.sh with the command, and NAME.aipp.cfg if it is asked for."""
    check_ports(model.inputs, options.dynamic_batch)
    if options.dynamic_batch and all(not port.shape or port.shape[0] is not None for port in model.inputs):
        raise ExportError("--dynamic-batch needs an input with an unknown batch. Give it, like images:?,224,224,3.")
    written = tensorflow.write(model, options, values)
    files = list(written.files)
    if options.aipp:
        files.append(pathlib.Path(options.out, options.name + ".aipp.cfg"))
        files[-1].write_text(fill_template("aipp.cfg", **_image_input_size(model)), encoding="utf-8")
    words = atc_command(model, options)
    files.append(pathlib.Path(options.out, options.name + ".atc.sh"))
    text = "#!/bin/sh\n# Run in this folder, in the environment of CANN.\n" + " \\\n  ".join(words) + "\n"
    files[-1].write_text(text, encoding="utf-8")
    tool.make_importable()
    lists = operators.read_cann_lists(options.opp) if options.opp else operators.built_in_lists()
    lines = [" ".join(words), *_lines_of_unlisted_ops(model, lists)]
    if not options.dynamic_batch:
        lines += _unknown_shapes(model)
    return Written(files, lines, written.outputs)


def atc_command(model: Model, options: Namespace) -> list[str]:
    """Return the words of the command, quoted for a shell."""
    sizes = [",".join(str(-1 if size is None else size) for size in port.shape or []) for port in model.inputs]
    shapes = [f"{split_tensor_name(port.tensor)[0]}:{shape}" for port, shape in zip(model.inputs, sizes)]
    arguments = {
        "model": options.name + ".pb",
        "framework": "3",
        "output": options.name,
        "soc_version": options.soc_version,
        "input_format": _layout_option(model, options.aipp),
        "input_shape": ";".join(shapes),
        "out_nodes": ";".join(port.tensor for port in model.outputs),
        "precision_mode": options.precision_mode,
    }
    if all(port.dtype.is_floating and port.dtype.size == 4 for port in model.outputs):
        arguments["output_type"] = "FP32"  # else they have 16 bits with force_fp16
    if options.dynamic_batch:
        arguments["dynamic_batch_size"] = ",".join(map(str, options.dynamic_batch))
    if options.aipp:
        arguments["insert_op_conf"] = options.name + ".aipp.cfg"
    return ["atc", *(shlex.quote(f"--{name}={value}") for name, value in arguments.items())]


def _unknown_shapes(model: Model) -> list[str]:
    """Return a line for each type of op with an unknown shape, since the NPU compiles it again for each new one."""
    lines: dict[str, str] = {}
    for op in tf_capture.import_into_new_graph(model.graph).get_operations():
        for tensor in op.outputs:
            is_used = tensor.consumers() or tensor.name in {port.tensor for port in model.outputs}
            if is_used and not tensor.shape.is_fully_defined():
                lines.setdefault(op.type, f"dynamic shape: {tensor.name} ({op.type}) {tensor.shape}")
    return list(lines.values())


def _layout_option(model: Model, has_aipp: bool) -> str:
    """Return the layout of the inputs: that of the ops for images, ND for other inputs."""
    ranks = {len(port.shape or []) for port in model.inputs}
    layouts = {
        attribute_or_default(node, "data_format", b"NHWC").decode() for node in model.graph.node if node.op in _LAYOUTS
    }
    if ranks == {5}:
        return "NCDHW" if "NCDHW" in layouts else "NDHWC"
    if ranks == {4} and len(layouts) == 1 or has_aipp:
        return "NCHW" if "NCHW" in layouts else "NHWC"
    return "ND"


def _image_input_size(model: Model) -> dict[str, object]:
    """Return number and size of the input that is an image in NHWC."""
    for number, port in enumerate(model.inputs):
        if port.dtype.is_floating and port.shape is not None and len(port.shape) == 4 and port.shape[3] == 3:
            return {"rank": number, "height": port.shape[1], "width": port.shape[2]}
    raise ExportError("no input is an image of three channels in NHWC. Leave --aipp out.")


def _lines_of_unlisted_ops(model: Model, lists: Lists) -> list[str]:
    """Return lines for the types of ops that the list of the device lacks."""
    nodes_of: dict[str, list[str]] = {}
    for node in model.graph.node:
        if node.op not in _GIVEN and lists.device_status(node.op) in (operators.HOST, operators.INPUT):
            nodes_of.setdefault(node.op, []).append(node.name)
    lines = []
    for op, names in nodes_of.items():
        line = next(iter(model.lines(names[0])), "")
        lines.append(f"not in {lists.source}: {op}, {len(names)} times, first {names[0]}{line and f', at {line}'}")
    return lines
