"""Every name of the vendor's packages is under npu_shim, at the vendor's path, with its parameters and defaults.

The table is that of the card's tests: vendor_names.txt, Python stubs by module.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pathlib
import re
from typing import Any, Iterator

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saver_pb2

from npu_shim._tensorflow import tf_api
from npu_shim.estimator.npu import npu_config
from npu_shim.ops import generated, npu_only
from tests.card import op_library

TABLE = pathlib.Path(__file__).parent.parent / "card" / "vendor_names.txt"
NEEDS_KERAS_2 = ("npu_convert_dropout",)
NEEDS_ESTIMATOR = {"NPUEstimator", "NPURunConfig"}


def sections() -> dict[str, list[ast.stmt]]:
    """Return the statements of each module of the table."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        head = re.match(r"# ((?:hccl|npu_bridge|npu_device)\S*)$", line)
        if head:
            lines = found.setdefault(head[1], [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return {module: ast.parse(_closed("\n".join(text))).body for module, text in found.items()}


def _closed(text: str) -> str:
    """Return stubs in which a class without members has a body."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith("class ") and line.endswith(":") and not following.startswith(" "):
            lines[number] += " ..."
    return "\n".join(lines)


def own(module: str) -> str:
    """Return the module of npu_shim for a module of the vendor."""
    package, _, below = module.partition(".")
    return f"npu_shim.{module}" if package in ("npu_device", "hccl") else f"npu_shim.{below}"


def rows() -> Iterator[Any]:
    for module, statements in sections().items():
        for node in statements:
            name = getattr(node, "name", None) or node.target.id  # type: ignore[attr-defined]
            yield pytest.param(module, name, node, id=f"{module}.{name}")


def parameters(node: Any, scope: Any) -> list[tuple[str, Any]]:
    """Return names and defaults of a stub; a default that is no literal is looked up in the module and TensorFlow."""
    names = [argument.arg for argument in node.args.args + node.args.kwonlyargs]
    nodes = dict(zip([a.arg for a in node.args.args][::-1], node.args.defaults[::-1]))
    nodes.update({a.arg: d for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults) if d is not None})
    return [(name, value(nodes[name], scope) if name in nodes else inspect.Parameter.empty) for name in names]


def value(node: Any, scope: Any) -> Any:
    names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    known = {"dtypes": tf, "tf": tf, "str": str, "list": list, "saver_pb2": saver_pb2}
    known["NpuExecutePlacement"] = npu_config.NpuExecutePlacement
    given = {name: known[name] if name in known else getattr(scope, name) for name in names}
    return eval(compile(ast.Expression(node), "default", "eval"), given)


@pytest.mark.parametrize("module, name, node", rows())
def test_is_served_with_the_vendors_parameters(module: str, name: str, node: Any) -> None:
    if module.endswith(NEEDS_KERAS_2) and not tf_api.has_keras_sessions():
        with pytest.raises(RuntimeError, match="the last TensorFlow that has it is 2.15"):
            importlib.import_module(own(module))
        return
    scope = importlib.import_module(own(module))
    served = getattr(scope, name)
    if name in NEEDS_ESTIMATOR and tf_api.estimator_namespace() is None:
        with pytest.raises(RuntimeError, match=f"{name} needs tf.estimator"):
            served()
        return
    stub = node
    if isinstance(node, ast.ClassDef):
        members = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
        stub = members.get("__init__")
        assert inspect.isclass(served) or callable(served)
    if isinstance(stub, ast.FunctionDef):
        signature = inspect.signature(served)
        variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        if inspect.isclass(served) and all(each.kind in variable for each in signature.parameters.values()):
            found = inspect.signature(served.__init__)
            signature = found.replace(parameters=list(found.parameters.values())[1:])
        wanted = parameters(stub, scope)
        check(signature, wanted[1:] if isinstance(node, ast.ClassDef) else wanted, stub.args.kwarg is not None)


def check(
    signature: inspect.Signature, wanted: list[tuple[str, Any]], takes_any: bool, may_have_defaults: bool = False
) -> None:
    """Compare names, order and defaults. npu_shim may have more parameters at the end, with defaults."""
    found = [each for each in signature.parameters.values() if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    assert [each.name for each in found[: len(wanted)]] == [name for name, _ in wanted]
    assert takes_any or all(each.default is not inspect.Parameter.empty for each in found[len(wanted) :])
    for each, (name, default) in zip(found, wanted):
        if may_have_defaults and default is inspect.Parameter.empty:
            continue
        own = tuple(each.default) if isinstance(default, list) else each.default
        assert own == (tuple(default) if isinstance(default, list) else default) or each.default is default, name


def operators() -> dict[str, op_library.Op]:
    """Return the rows of the vendor's operators by the names of their functions; collectives have functions of their own."""
    return {op_library.python_name(op.name): op for op in op_library.table() if not op.name.startswith("Hcom")}


def generated_parameters(op: op_library.Op) -> list[tuple[str, Any]]:
    """Return names and defaults of the function that TensorFlow generates for an operator."""
    inferred = set(re.findall(r"\w+", " ".join(op.inputs.values())))
    attributes = {name: kind.partition("=")[::2] for name, kind in op.attributes.items() if name not in inferred}
    attributes = {name: (kind, text) for name, (kind, text) in attributes.items() if not kind.rstrip().endswith(">")}
    empty = inspect.Parameter.empty
    required = [(name, empty) for name in op.inputs]
    required += [
        (name, empty) for name in op.attributes if name not in inferred and not attributes.get(name, ("", ""))[1]
    ]
    given = [(name, _literal(text.strip())) for name, (_, text) in attributes.items() if text]
    return [*required, *given, ("name", None)]


def _literal(text: str) -> Any:
    if text.startswith("DT_"):
        return tf.as_dtype(text[3:].lower())
    return ast.literal_eval({"true": "True", "false": "False"}.get(text, text))


@pytest.mark.parametrize("name", sorted(operators()))
def test_operators_have_the_parameters_of_the_generated_functions(name: str) -> None:
    served = generated.find_operator(name, "npu.gen_npu_ops")
    if name in npu_only.ROWS:
        with pytest.raises(npu_only.OnlyOnNPU, match=re.escape(npu_only.npu_only_text("npu.gen_npu_ops", name))):
            served()
        return
    assert served.__name__ != "only_on_npu"
    check(inspect.signature(served), generated_parameters(operators()[name]), False, may_have_defaults=True)


def test_all_operators_are_those_of_the_vendor() -> None:
    assert set(generated.operator_names()) == set(operators())


def test_exactly_the_names_of_the_list_exist_on_the_npu_only() -> None:
    """Each name of the vendor's modules computes on the CPU, or raises an error that says why it does not."""
    raising = set()
    for module, statements in sections().items():
        if module.endswith(NEEDS_KERAS_2) and not tf_api.has_keras_sessions():
            continue
        for node in statements:
            name = getattr(node, "name", None) or node.target.id  # type: ignore[attr-defined]
            if name in NEEDS_ESTIMATOR and tf_api.estimator_namespace() is None:
                continue
            served = getattr(importlib.import_module(own(module)), name)
            if getattr(served, "__name__", "") == "only_on_npu":
                owner = module.rpartition(".")[2]
                raising.add((owner, name))
                with pytest.raises(npu_only.OnlyOnNPU, match=re.escape(npu_only.npu_only_text(owner, name))):
                    served()
    assert raising == {(owner, name) for owner, names in npu_only.SIGNATURES.items() for name in names}
    for name in npu_only.ROWS:
        message = npu_only.npu_only_text("npu_ops", name)
        assert re.fullmatch(r"npu_ops\.\w+ exists on the NPU only: it [^.]+\. [A-Z][^.]+\. [A-Z].+\.", message), message
