"""A frozen graph for prediction in a session on the NPU, with the configuration of the session."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from google.protobuf import text_format

from npu_shim.config.session import session_config
from npu_shim.exporting.targets import Options, Written, check_sizes, tensorflow

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import ConfigProto
    from npu_shim.exporting.model import Model


def write(model: Model, folder: str, options: Options) -> Written:
    """Write the graph, its names, and NAME.config.pbtxt with a ConfigProto."""
    check_sizes(model.inputs)
    written = tensorflow.write(model, folder, options)
    path = os.path.join(folder, options.name + ".config.pbtxt")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text_format.MessageToString(config(options)))
    return Written([*written.files, path], written.lines, written.run)


def config(options: Options, mixes: bool = False) -> ConfigProto:
    """Return the configuration of a session that only predicts.

    Args:
        options: with the precision.
        mixes: True to run operators that the NPU lacks on the host.
    """
    more = {"mix_compile_mode": True} if mixes else {}
    return session_config(None, graph_run_mode=0, precision_mode=options.precision_mode, **more)
