"""A frozen graph for TensorFlow 1.15 and later, without npu_shim."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from npu_shim._tensorflow import tf_api
from npu_shim.exporting import proof
from npu_shim.exporting.targets import Options, Written

if TYPE_CHECKING:
    from npu_shim.exporting.model import Model
    from npu_shim.exporting.ports import Port


def write(model: Model, folder: str, options: Options) -> Written:
    """Write NAME.pb, and NAME.json with the names, types and shapes of inputs and outputs."""
    graph, names = write_graph(model, folder, options.name), os.path.join(folder, options.name + ".json")
    with open(names, "w", encoding="utf-8") as stream:
        json.dump({"inputs": _ports(model.inputs), "outputs": _ports(model.outputs)}, stream, indent=2)
        stream.write("\n")
    with open(graph, "rb") as stream:
        read = tf_api.GraphDef.FromString(stream.read())
    return Written([graph, names], [], proof.run_graph(read, {}, model.inputs, model.outputs))


def write_graph(model: Model, folder: str, name: str) -> str:
    """Write the frozen graph, and return its path."""
    path = os.path.join(folder, name + ".pb")
    with open(path, "wb") as stream:
        stream.write(model.graph.SerializeToString())
    return path


def _ports(ports: list[Port]) -> dict[str, object]:
    return {port.key: {"tensor": port.tensor, "dtype": port.dtype.name, "shape": port.shape} for port in ports}
