"""On a card, each function of one operator makes this operator, with the arguments of the call."""

from __future__ import annotations

import ast
import importlib
import re
from typing import Any, Iterator

import op_library
import pytest
import tensorflow as tf
import vendor_package
from conftest import FACE

v1 = tf.compat.v1
_SETTINGS = {"fusion": 2, "pad_mode": "ZERO"}  # those that npu_shim checks
_OF_KIND = {"int": 3, "float": 0.5, "bool": True, "string": "text", "shape": [2, 3], "type": tf.float32}


def _functions() -> Iterator[Any]:
    """Return module, function and operator of each row."""
    for module, lines in vendor_package.table().items():
        package, _, below = module.partition(".")
        if package not in ("npu_bridge", FACE):
            continue
        for line in lines:
            stub, _, operator = line.partition("  # ")
            if operator:
                function = ast.parse(stub).body[0]
                assert isinstance(function, ast.FunctionDef)
                parameters = [each.arg for each in function.args.args if each.arg != "name"]
                where = f"npu_shim.{'npu_device.' * (package == 'npu_device')}{below}"
                yield pytest.param(where, function.name, operator, parameters, id=f"{where[9:]}.{function.name}")


def _input(kind: str, types: dict[str, str]) -> Any:
    """Return an argument for an input: a placeholder, a list of them, or a variable for a reference."""
    count, star, kind = kind.rpartition(" * ")
    if star:
        return [_input(kind, types)]
    reference = kind.startswith("Ref(")
    kind = kind[4:-1] if reference else kind
    allowed = types.get(kind, kind)
    if allowed.startswith("list("):
        return [v1.placeholder(tf.float32, [2])]
    words = re.findall(r"\w+", allowed)
    known = [name for name in ("float32", "int64", "int32") if name in words]
    dtype = tf.as_dtype(known[0] if known else words[0] if hasattr(tf.dtypes, words[0]) else "float32")
    return v1.Variable(tf.zeros([2], dtype), use_resource=False) if reference else v1.placeholder(dtype, None)


@pytest.mark.parametrize("module, name, operator, parameters", list(_functions()))
def test_makes_the_vendors_operator(
    calls: list[Any], module: str, name: str, operator: str, parameters: list[str]
) -> None:
    row = op_library.row(operator)
    places = op_library.places(operator, parameters)
    with v1.Graph().as_default() as graph:
        given = {}
        for parameter in parameters:
            place = places.get(parameter)
            if place in row.inputs:
                given[parameter] = _input(row.inputs[place], row.attributes)
            else:
                given[parameter] = _SETTINGS.get(parameter) or _setting(row.attributes.get(place, "int"))
        getattr(importlib.import_module(module), name)(**given)
        made = [node for node in graph.as_graph_def().node if node.op == operator]
    assert len(made) == 1
    for parameter, place in places.items():
        if place in row.attributes:
            assert _same(made[0].attr[place], given[parameter]), f"{place} is not {given[parameter]!r}"


def _setting(kind: str) -> Any:
    """Return an allowed argument for an attribute."""
    kind = kind.partition(" = ")[0].partition(" >=")[0]
    if kind.startswith("list("):
        return [_OF_KIND[kind[5:-1]]]
    if kind.startswith("{"):
        names = [name.strip("' ") for name in kind.strip("{}").split(",")]
        return names[0] if "'" in kind else tf.as_dtype("float32" if "float32" in names else names[0])
    return _OF_KIND[kind]


def _same(attribute: Any, value: Any) -> bool:
    if isinstance(value, tf.DType):
        return attribute.type == value.as_datatype_enum
    if isinstance(value, list) and attribute.HasField("shape"):
        return [dim.size for dim in attribute.shape.dim] == value
    if isinstance(value, list):
        found = attribute.list
        expected = [each.as_datatype_enum if isinstance(each, tf.DType) else each for each in value]
        return any(list(each) == expected for each in (found.i, found.f, found.type)) or bool(found.shape)
    field = attribute.WhichOneof("value")
    got = getattr(attribute, field)
    return got == (value.encode() if isinstance(value, str) else value)
