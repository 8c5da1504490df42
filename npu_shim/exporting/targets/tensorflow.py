"""A frozen graph for TensorFlow 1.15 and later, without npu_shim."""

from __future__ import annotations

import json
import pathlib
from argparse import Namespace

from npu_shim._tensorflow import tf_api
from npu_shim.exporting import proof
from npu_shim.exporting.inference_model import Model
from npu_shim.exporting.ports import Port
from npu_shim.exporting.proof import Values
from npu_shim.exporting.targets import Written


def write(model: Model, options: Namespace, values: Values) -> Written:
    """Write NAME.pb, and NAME.json with the names, types and shapes of inputs and outputs."""
    graph, names = (pathlib.Path(options.out, options.name + ending) for ending in (".pb", ".json"))
    graph.write_bytes(model.graph.SerializeToString(deterministic=True))
    ports = {"inputs": _ports_as_json(model.inputs), "outputs": _ports_as_json(model.outputs)}
    names.write_text(json.dumps(ports, indent=2) + "\n", encoding="utf-8")
    read = tf_api.GraphDef.FromString(graph.read_bytes())
    return Written([graph, names], [], proof.run_graph(read, {}, model.inputs, model.outputs, values))


def _ports_as_json(ports: list[Port]) -> dict[str, object]:
    return {port.key: {"tensor": port.tensor, "dtype": port.dtype.name, "shape": port.shape} for port in ports}
