"""Find the variables, and the layers with variables, that the input pipeline reads on the host."""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple

from ..project.context import Context
from ..semantics.call_sites import modules_using
from ..semantics.model import Call, Where
from ..semantics.module_index import Names
from ..semantics.tf_types import Type
from ..semantics.value_flow import origins
from .device_placement import host_functions, is_passed_to_data

_SEQUENTIAL = frozenset({"tensorflow.keras.Sequential"})
_MAP = frozenset({"map"})
_SIZED = frozenset("batch padded_batch prefetch repeat shard shuffle skip take window".split())


class PipelineRead(NamedTuple):
    """A read of a variable in the input pipeline.

    Attributes:
        node: the call that makes the variable if the file has it, else the read.
        name: the dotted name of the function that makes it.
    """

    node: ast.expr
    name: str


def pipeline_reads(context: Context, makers: frozenset[str], sizes: bool = False) -> Iterator[PipelineRead]:
    """Yield the variables that functions of ``dataset.map`` and its kind read, each once, except those on the CPU.

    Args:
        context: the file.
        makers: the dotted names of the functions that make variables or layers.
        sizes: yield the variables that are sizes of batches, buffers and the like, too.
    """
    names = context.names
    host = names.once(host_functions)
    if not makers.isdisjoint(context.called.values()):
        host |= names.once(_mapped_elsewhere)
    reads: list[tuple[ast.expr, Where]] = []
    if host:
        reads += [(read, where) for read, where in names.reads if any(part in host for part in names.ancestors(read))]
    reads += [(part, where) for read, where in reads for part in _attributes_of(read, names)]
    reads += [(value, call.where) for call in names.calls for value in _arguments(context, call, sizes)]
    reported: set[ast.AST] = set()
    for read, where in reads:
        for maker, name, its_names in _makers(context, read, where, makers):
            if maker not in reported and not any(part in host for part in its_names.ancestors(maker)):
                reported.add(maker)
                yield PipelineRead(maker if its_names is names else read, name)


def _attributes_of(read: ast.expr, names: Names) -> Iterator[ast.expr]:
    """Yield ``self.count`` and ``self.count.assign_add`` for ``self``."""
    parent = names.parents.get(read)
    while isinstance(parent, ast.Attribute) and isinstance(parent.ctx, ast.Load):
        yield parent
        parent = names.parents.get(parent)


def _arguments(context: Context, call: Call, sizes: bool) -> Iterator[ast.expr]:
    """Yield the layer of ``dataset.map(layer)`` and, if they are asked for, the sizes that methods of datasets take."""
    if _is_of_data(context, call, _MAP):
        yield from call.node.args[:1]
    elif sizes and _is_of_data(context, call, _SIZED):
        yield from [*call.node.args, *(keyword.value for keyword in call.node.keywords)]


def _mapped_elsewhere(names: Names) -> frozenset[ast.AST]:
    """Return the functions of a module that another file passes to tf.data."""
    mapped = set()
    for function in names.functions:
        name = getattr(function.node, "name", "")
        if isinstance(names.parents.get(function.node), ast.Module) and name:
            for user in modules_using(names, name) or ():
                for mention in user.mentions(name):
                    definition = user.definition(mention, user.place(mention))
                    if definition is not None and definition.node is function.node and is_passed_to_data(mention, user):
                        mapped.add(function.node)
    return frozenset(mapped)


def _is_of_data(context: Context, call: Call, methods: frozenset[str]) -> bool:
    function = call.node.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr in methods
        and context.types.of(function.value, call.where) == Type.DATASET
    )


def _makers(
    context: Context, read: ast.expr, where: Where, makers: frozenset[str]
) -> Iterator[tuple[ast.Call, str, Names]]:
    """Yield the calls that make the variable or layer that a name has, except those on the CPU."""
    for origin in origins(read, where, context.names):
        node = origin.node
        if not isinstance(node, ast.Call):
            continue
        name = origin.resolve() or ""
        if name in _SEQUENTIAL:
            parts = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
            known = [(part, origin.names.resolve(part.func, origin.where) or "") for part in parts]
            node, name = next(((part, its_name) for part, its_name in known if its_name in makers), (node, name))
        if name in makers and not _is_on_cpu(origin.names, node):
            yield node, name, origin.names


def _is_on_cpu(names: Names, node: ast.AST) -> bool:
    """Return True if a call is in a context of the CPU, or if all objects are made there whose class has the call."""
    for parent in names.ancestors(node):
        if isinstance(parent, ast.With) and any("cpu" in ast.dump(item.context_expr).lower() for item in parent.items):
            return True
        if isinstance(parent, ast.ClassDef):
            definitions = [names.definition(call.node.func, call.where) for call in names.calls]
            calls = [
                c.node
                for c, definition in zip(names.calls, definitions)
                if definition is not None and definition.node is parent
            ]
            return bool(calls) and all(_is_on_cpu(names, call) for call in calls if parent not in names.ancestors(call))
    return False
