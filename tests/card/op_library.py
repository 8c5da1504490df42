"""Build and load an operator library with the names, types and attributes of the vendor's.

The registrations come from the table ``vendor_ops.txt``; ``kernels.cc`` computes on the CPU the operators that a
training step needs. The others only build graphs. The library is compiled once for each TensorFlow with g++, against its
headers, and kept beside the environment (``share/npu_shim_card``), or in a temporary folder if that cannot be written.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from types import ModuleType
from typing import Iterator, NamedTuple

import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
_TYPES = {"float16": "half", "float32": "float", "float64": "double"}


class Op(NamedTuple):
    """A row of the table."""

    name: str
    inputs: dict[str, str]  # name -> type
    outputs: dict[str, str]
    attributes: dict[str, str]  # name -> type and default
    stateful: bool
    shapes: dict[str, str]  # output -> shape


def table() -> list[Op]:
    """Return the rows of vendor_ops.txt."""
    with open(os.path.join(HERE, "vendor_ops.txt"), encoding="utf-8") as file:
        return [_parse(line) for line in file if line.strip() and not line.startswith("#")]


def load() -> ModuleType:
    """Return the library as TensorFlow wraps it: one function for each operator, in snake case.

    Raises:
        RuntimeError: if g++ fails; the message has its output.
    """
    return tf.load_op_library(_built())


def row(operator: str) -> Op:
    """Return the row of an operator."""
    return next(op for op in table() if op.name == operator)


def places(operator: str, parameters: list[str]) -> dict[str, str]:
    """Return the input or attribute of an operator for each parameter of a function that makes it.

    A parameter with the name of an input or attribute is that one. The others are the remaining inputs, then the
    attributes without a default that TensorFlow cannot infer, in their order. A parameter without a place is not used.
    """
    op = row(operator)
    inferred = set(re.findall(r"\w+", " ".join(op.inputs.values())))
    found = {name: name for name in parameters if name in op.inputs or name in set(op.attributes) - inferred}
    free = [name for name in op.inputs if name not in found]
    free += [
        name
        for name, kind in op.attributes.items()
        if name not in found and name not in inferred and ("=" not in kind.replace(">=", "") or kind.startswith("type"))
    ]
    for parameter in parameters:
        if parameter not in found and free:
            found[parameter] = free.pop(0)
    return found


def python_name(operator: str) -> str:
    """Return the name of the function that TensorFlow makes for an operator."""
    text = ""
    for before, letter, after in zip(" " + operator, operator, operator[1:] + " "):
        if letter.isupper() and before != " " and (not before.isupper() or after.islower()):
            text += "_"
        text += letter.lower()
    return text


def _parse(line: str) -> Op:
    match = re.match(r"(\w+)\((.*?)\) -> \((.*?)\)((?: \| .*)?)$", line.strip())
    if match is None:
        raise ValueError(f"vendor_ops.txt: this line is no operator: {line!r}")
    name, inputs, outputs, rest = match.groups()
    attributes: dict[str, str] = {}
    shapes: dict[str, str] = {}
    stateful = False
    for part in rest.split(" | ")[1:]:
        if part == "stateful":
            stateful = True
        elif part.startswith("shapes: "):
            shapes = _pairs(part[len("shapes: ") :], ", ", " = ")
        else:
            attributes = _pairs(part, "; ", ": ")
    return Op(name, _pairs(inputs, ", ", ": "), _pairs(outputs, ", ", ": "), attributes, stateful, shapes)


def _pairs(text: str, between: str, colon: str) -> dict[str, str]:
    pairs = (part.split(colon, 1) for part in text.split(between) if part)
    return {name: value for name, value in pairs}


# --- C++ ---------------------------------------------------------------------
def registrations() -> str:
    """Return the C++ source that registers all operators of the table."""
    lines = ['#include "kernels.cc"', ""]
    for op in table():
        lines.append(f'REGISTER_OP("{op.name}")')
        lines += [f'    .Input("{name}: {_cpp_type(kind)}")' for name, kind in op.inputs.items()]
        lines += [f'    .Output("{name}: {_cpp_type(kind)}")' for name, kind in op.outputs.items()]
        lines += [f'    .Attr("{name}: {_cpp_type(kind)}")' for name, kind in op.attributes.items()]
        lines += ["    .SetIsStateful()"] * op.stateful
        lines += [f"    .SetShapeFn([](InferenceContext* c) {{ {' '.join(_shapes(op))} }});", ""]
    return "\n".join(lines)


def _cpp_type(kind: str) -> str:
    return re.sub(r"\b(float16|float32|float64)\b", lambda found: _TYPES[found.group()], kind)


def _shapes(op: Op) -> Iterator[str]:
    yield "UnknownShapes(c);"
    for output, shape in op.shapes.items():
        source, _, by = shape.partition(" ")
        if source.startswith("["):
            yield f'SetOutput(c, "{output}", c->MakeShape({{{source[1:-1]}}}));'
        elif source in op.inputs:
            factor = f'"{by[2:]}", {"true" if by[0] == "*" else "false"}' if by else '"", true'
            yield f'TF_RETURN_IF_ERROR(CopyShape(c, "{source}", "{output}", {factor}));'
        else:
            yield f'TF_RETURN_IF_ERROR(ShapeOfAttribute(c, "{source}", "{output}"));'
    yield "return Ok();"


def _built() -> str:
    kernels = ""
    for name in ("kernels.cc", "all_reduce.h"):
        with open(os.path.join(HERE, name), encoding="utf-8") as file:
            kernels += file.read()
    source = registrations()
    flags = [*tf.sysconfig.get_compile_flags(), *tf.sysconfig.get_link_flags()]
    key = hashlib.sha256("\n".join([tf.__version__, source, kernels, *flags]).encode()).hexdigest()[:16]
    for folder in (os.path.join(sys.prefix, "share", "npu_shim_card"), tempfile.gettempdir()):
        library = os.path.join(folder, f"npu_ops_{key}.so")
        if os.path.exists(library):
            return library
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            _compile(source, library, flags)
            return library
    raise RuntimeError(f"neither {sys.prefix} nor {tempfile.gettempdir()} can be written; set TMPDIR")


def _compile(source: str, library: str, flags: list[str]) -> None:
    with tempfile.TemporaryDirectory(dir=os.path.dirname(library)) as folder:
        path, made = os.path.join(folder, "registrations.cc"), os.path.join(folder, "made.so")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        standard = [] if any(flag.startswith("-std=") for flag in flags) else ["-std=c++14"]
        command = ["g++", "-shared", "-fPIC", "-O1", "-w", "-DNDEBUG", "-I", HERE, path, "-o", made, *standard, *flags]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}")
        os.replace(made, library)  # another process may build the same
