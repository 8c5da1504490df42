"""A frozen graph for prediction in a session on the NPU, with the configuration of the session."""

from __future__ import annotations

import pathlib
from argparse import Namespace

from google.protobuf import text_format

from npu_shim._tensorflow.types import ConfigProto
from npu_shim.config.session import session_config
from npu_shim.exporting.inference_model import Model
from npu_shim.exporting.proof import Values
from npu_shim.exporting.targets import Written, check_ports, tensorflow


def write(model: Model, options: Namespace, values: Values) -> Written:
    """Write the graph, its names, and NAME.config.pbtxt with a ConfigProto."""
    check_ports(model.inputs)
    written = tensorflow.write(model, options, values)
    path = pathlib.Path(options.out, options.name + ".config.pbtxt")
    path.write_text(text_format.MessageToString(inference_session_config(options)), encoding="utf-8")
    return Written([*written.files, path], written.lines, written.outputs)


def inference_session_config(options: Namespace, uses_host_for_missing_ops: bool = False) -> ConfigProto:
    """Return the configuration of a session that only predicts.

    Args:
        options: with the precision.
        uses_host_for_missing_ops: True to run operators that the NPU lacks on the host.
    """
    more = {"mix_compile_mode": True} if uses_host_for_missing_ops else {}
    return session_config(None, graph_run_mode=0, precision_mode=options.precision_mode, **more)
