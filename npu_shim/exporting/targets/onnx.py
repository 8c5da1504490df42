"""A model of ONNX, which onnxruntime and other runtimes load. The package tf2onnx converts the frozen graph."""

from __future__ import annotations

import importlib
import logging
import pathlib
import shlex
import sys
from argparse import Namespace

import google.protobuf
import numpy

from npu_shim._tensorflow import tf_capture
from npu_shim._tensorflow.types import Module
from npu_shim.exporting.graph_defs import ExportError
from npu_shim.exporting.inference_model import Model
from npu_shim.exporting.proof import Values
from npu_shim.exporting.targets import Written


def write(model: Model, options: Namespace, values: Values) -> Written:
    """Write NAME.onnx, whose inputs and outputs have the names of the signature."""
    names = ("tf2onnx.tfonnx", "tf2onnx.optimizer", "onnx.checker", "onnxruntime")
    tfonnx, optimizer, checker, runtime = map(_import_package, names)
    logging.getLogger("tf2onnx").setLevel(logging.CRITICAL)  # a failure is an exception, too
    try:
        with tf_capture.import_into_new_graph(model.graph).as_default() as graph:
            onnx_graph = tfonnx.process_tf_graph(
                graph,
                opset=options.opset,
                input_names=[port.tensor for port in model.inputs],
                output_names=[port.tensor for port in model.outputs],
                tensors_to_rename={port.tensor: port.key for port in [*model.inputs, *model.outputs]},
            )
            converted = optimizer.optimize_graph(onnx_graph).make_model(options.name)
        checker.check_model(converted)
    except Exception as error:  # of many kinds
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        instead = "Compute that part on the host: end the graph before it with --outputs, or begin after it."
        raise ExportError(f"tf2onnx does not convert the graph: {reason}. {instead}")
    path = pathlib.Path(options.out, options.name + ".onnx")
    path.write_bytes(converted.SerializeToString())
    keys = [port.key for port in model.outputs]
    try:
        session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        return Written([path], [], dict(zip(keys, session.run(keys, values))))
    except Exception as error:  # of many kinds
        reason = str(error).splitlines()[0]
        instead = "Try another --opset, or onnxruntime 1.11 or later in an environment with NumPy 1.21."
        raise ExportError(f"onnxruntime {runtime.__version__} does not run {path}: {reason} {instead}")


def _import_package(name: str) -> Module:
    try:
        return importlib.import_module(name)
    except Exception as error:  # AttributeError, too: onnx asks ml_dtypes for types of later versions
        reason = (str(error).splitlines() or ["it says nothing"])[0].rstrip(".")
        raise ExportError(
            f"--for onnx cannot import {name}: {type(error).__name__}: {reason}. Install versions that fit this "
            f"environment: {install_command()}. If pip finds none, export in an environment of its own."
        )


def install_command() -> str:
    """Return the command that installs the packages and keeps NumPy and protobuf as TensorFlow needs them."""
    kept = f"numpy=={numpy.__version__} protobuf=={google.protobuf.__version__}"
    # onnx 1.19 wants types of ml_dtypes that TensorFlow 2.15's does not have
    return f"{shlex.quote(sys.executable)} -m pip install 'onnx<1.19' onnxruntime tf2onnx packaging {kept}"
