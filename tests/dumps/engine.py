"""A double of the engine: it runs the ops of a reference as operators of a device, and dumps them with its graph.

It fuses convolutions and products with what follows them, renames operators, computes in 16 bits, keeps tensors in the
layouts of the device, and adds TransData and Cast.
"""

from __future__ import annotations

import pathlib
import re
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np

from npu_shim.dumps.reference import Reference
from tests.dumps.messages import dump_bytes, tensor

TIME = 1700000000000000
_FUSED = {"Conv2D": ("BiasAdd", "Relu"), "MatMul": ("AddV2", "Add", "BiasAdd", "Relu")}
_RENAMED = ("Reshape", "Mul")
Change = Callable[[str, np.ndarray], np.ndarray]


@dataclass
class Made:
    """An operator of the device and what it returns."""

    name: str
    op_type: str
    originals: list[str]
    arrays: list[np.ndarray]
    inputs: list[tuple[str, int]] = field(default_factory=list)
    layout: str = "ND"
    letters: str = ""
    dtype: str = ""


def printed(text: str) -> str:
    """Return text of protobuf as it is printed: with a line for each field, and for the begin and end of each block."""
    return "\n".join(re.findall(r'[\w.]+ \{|\}|[\w.]+: (?:"(?:\\.|[^"\\])*"|[\w.+-]+)', text)) + "\n"


class Engine:
    """Dumps one step.

    Attributes:
        operators: by their names, in the order in which they run.
    """

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self.operators: dict[str, Made] = {}
        self._of: dict[str, str] = {}  # op -> operator that returns it
        self._consumers: dict[str, list[str]] = {}
        self._by_op: dict[str, list[int]] = {}
        for place, output in enumerate(reference.outputs):
            self._by_op.setdefault(output.op, []).append(place)
            if output.output == 0:
                for taken in output.inputs:
                    self._consumers.setdefault(taken.rpartition(":")[0], []).append(output.op)
        done: set[str] = set()
        for op in self._by_op:
            if op not in done:
                done |= set(self._make(op))

    def _make(self, op: str) -> list[str]:
        members = [op]
        first = self.reference.outputs[self._by_op[op][0]]
        for wanted in _FUSED.get(first.type, ()):
            after = [each for each in self._consumers.get(members[-1], []) if "Shape" not in self._type(each)]
            if len(after) == 1 and self._type(after[0]) == wanted:
                members.append(after[0])
        last = self.reference.outputs[self._by_op[members[-1]][0]]
        name = "".join(each.rpartition("/")[2] for each in members) + "_of_" + op if len(members) > 1 else op
        name = f"{name}_renamed_by_a_pass" if first.type in _RENAMED and len(members) == 1 else name
        arrays = [np.array(self.reference.load_output(place)) for place in self._by_op[members[-1]]]
        made = Made(name, first.type, members, arrays)
        is_float, dimensions = arrays[0].dtype == np.float32, arrays[0].ndim
        if first.type.startswith(("Conv2D", "MatMul", "Relu", "BiasAdd", "MaxPool")) and is_float:
            made.dtype = "float16"
        if first.type == "Conv2DBackpropFilter":
            made.layout, made.letters = "FRACTAL_Z", "HWCN"
        elif (
            dimensions == 4
            and is_float
            and last.type in ("Conv2D", "BiasAdd", "Relu", "MaxPool", "ReluGrad", "MaxPoolGrad")
        ):
            made.layout, made.letters = "NC1HWC0", "NHWC"
        elif first.type == "MatMul":
            made.layout = "FRACTAL_NZ"
        inputs = [taken for each in members for taken in self.reference.outputs[self._by_op[each][0]].inputs]
        for place, taken in enumerate(inputs):
            producer, _, output = taken.rpartition(":")
            if producer in members or producer not in self._of:
                continue
            source = (self._of[producer], int(output))
            if made.layout != "ND" and place == 0:
                source = self._added("TransData", name, *source)
                source = self._added("Cast", name, *source)
            made.inputs.append(source)
        self.operators[name] = made
        self._of[members[-1]] = name
        return members

    def _added(self, op_type: str, name: str, source: str, output: int) -> tuple[str, int]:
        made = Made(
            f"trans_{op_type}_{len(self.operators)}", op_type, [], self.operators[source].arrays, [(source, output)]
        )
        self.operators[made.name] = made
        return made.name, output

    def _type(self, op: str) -> str:
        return self.reference.outputs[self._by_op[op][0]].type

    def graph(self) -> str:
        """Return the graph as ge_proto text."""
        ops = "".join(map(self._op, self.operators.values()))
        return printed(f'name: "ge_default_1" graph {{ name: "graph_1" {ops} }}')

    def _op(self, made: Made) -> str:
        names = "".join(f' s: "{name}"' for name in made.originals)
        lines = [f'name: "{made.name}" type: "{made.op_type}"']
        lines += [f'input: "{name}:{output}"' for name, output in made.inputs] + ['input: "a_control_edge:-1"']
        lines.append('attr { key: "a_text" value { s: "{\\"quoted\\" }\\n\\303\\244" } }')
        lines.append(
            f'attr {{ key: "_datadump_original_op_names" value {{ list {{{names} val_type: VT_LIST_STRING }} }} }}'
        )
        for place in range(len(made.arrays)):
            origin = f'attr {{ key: "origin_format" value {{ s: "{made.letters or "ND"}" }} }}'
            if made.op_type == "Conv2D":
                origin += f' attr {{ key: "_datadump_origin_name" value {{ s: "{made.originals[-1]}" }} }}'
                origin += f' attr {{ key: "_datadump_origin_output_index" value {{ i: {place} }} }}'
            lines.append(f'output_desc {{ dtype: DT_FLOAT layout: "{made.layout}" {origin} }}')
        return "  op {\n    " + "\n    ".join(lines) + "\n  }\n"

    def onnx(self) -> str:
        """Return the graph as ge_onnx text."""
        return printed("graph {" + "".join(map(self._node, self.operators.values())) + 'name: "graph_1" }')

    def _node(self, made: Made) -> str:
        lines = [f'input: "{name}:{output}"' for name, output in made.inputs] + [f'name: "{made.name}"']
        lines.append(f'op_type: "ge:{made.op_type}"')
        names = "".join(f' strings: "{name}"' for name in made.originals)
        lines.append(f'attribute {{ name: "_datadump_original_op_names"{names} type: STRINGS }}')
        lines.append(f'attribute {{ name: "output_desc_nums" i: {len(made.arrays)} type: INT }}')
        for place in range(len(made.arrays)):
            lines.append(
                f'attribute {{ name: "output_desc_origin_layout:{place}" s: "{made.letters or "ND"}" type: STRING }}'
            )
        return "  node {\n    " + "\n    ".join(lines) + "\n  }\n"

    def write(self, folder: pathlib.Path, step: int = 0, with_inputs: bool = True) -> None:
        """Write graph and dumps as the engine places them."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ge_proto_00000001_graph_1_Build.txt").write_text(self.graph(), encoding="utf-8")
        self.place(folder, step).mkdir(parents=True, exist_ok=True)
        for name in self.operators:
            self.write_operator(folder, name, step=step, with_inputs=with_inputs)

    @staticmethod
    def place(folder: pathlib.Path, step: int = 0) -> pathlib.Path:
        """Return the folder of a step's dumps."""
        return folder / "20231114221320" / "0" / "ge_default_1" / "1" / str(step)

    def write_operator(
        self,
        folder: pathlib.Path,
        name: str,
        change: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
        step: int = 0,
        with_inputs: bool = True,
    ) -> pathlib.Path:
        """Write the dump of an operator, and return its path.

        Args:
            change: of the first output as dump_bytes takes it.
        """
        made = self.operators[name]
        outputs = [tensor(array, made.layout, made.letters, made.dtype) for array in made.arrays]
        if made.op_type == "ReluGrad":
            outputs[0]["original"] = made.originals[-1]
        if change:
            outputs[0] = change(outputs[0])
        inputs = [tensor(self._value(*taken)) for taken in made.inputs] if with_inputs else []
        attributes = {"_datadump_original_op_names": "".join(f"[{len(each)}]{each}" for each in made.originals)}
        number = list(self.operators).index(name)
        flat = name.replace("/", "_").replace(".", "_")
        file = f"{made.op_type}.{flat}.{number}.3.{TIME + number}"
        place = self.place(folder, step)
        if len(flat) > 60:  # as the engine does beyond 255 characters
            row, file = f"{number:020d},{file}\n", f"{number:020d}"
            mapping = place / "mapping.csv"
            known = mapping.read_text(encoding="utf-8") if mapping.exists() else ""
            mapping.write_text(known if row in known else known + row, encoding="utf-8")
        path = place / file
        path.write_bytes(dump_bytes(name, outputs, inputs, attributes, inside=number % 7 == 0))
        return path

    def _value(self, name: str, output: int) -> np.ndarray:
        made = self.operators[name]
        array = made.arrays[output]
        return array.astype(made.dtype) if made.dtype else array
