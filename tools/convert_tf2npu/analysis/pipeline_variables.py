"""Find the variables, and the layers with variables, that the input pipeline reads on the host."""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple

from ..project.context import Context
from ..semantics.call_sites import modules_using
from ..semantics.model import Call, Where
from ..semantics.module_index import Names
from ..semantics.resolved_name import ResolvedName
from ..semantics.tf_types import Type
from ..semantics.value_flow import origins
from ..syntax.expressions import constant_or, last_name, values_of
from .device_placement import (
    belongs_to_test,
    files_passing_to_data,
    functions_called_as_python,
    functions_in_tf_data,
    functions_passed_to_data,
    functions_traced_by_tf_data,
)

_SEQUENTIAL = frozenset({"tensorflow.keras.Sequential"})
_MAP = frozenset({"map"})
_SIZED = frozenset("batch padded_batch prefetch repeat shard shuffle skip take window".split())
_STATIC = frozenset("device dtype get_shape graph name ndim shape trainable".split())  # attributes without the value


class PipelineRead(NamedTuple):
    """A read of a variable in the input pipeline.

    Attributes:
        node: the call that makes the variable if the file has it, else the read.
        name: the dotted name of the function that makes it.
    """

    node: ast.expr
    name: str


def pipeline_reads(context: Context, makers: frozenset[str]) -> Iterator[PipelineRead]:
    """Yield the variables that functions of ``dataset.map`` and its kind read, each once, except those on the CPU.

    Variables that are sizes of batches, buffers and the like are among them.

    Args:
        context: the file.
        makers: the dotted names of the functions that make variables or layers.
    """
    names = context.names
    host, traced = functions_in_tf_data(names), functions_traced_by_tf_data(names)
    if not makers.isdisjoint(context.called_names.values()):
        elsewhere = names.once(_functions_mapped_elsewhere)
        host, traced = host | elsewhere, traced | elsewhere
    reads: list[tuple[ast.expr, Where]] = []
    if traced:
        reads += [(read, where) for read, where in names.reads if _is_traced(names, read, traced)]
    reads += [(part, where) for read, where in reads for part in _attribute_chain(read, names)]
    reads += [(value, call.where) for call in names.calls for value in _layer_and_size_arguments(context, call)]
    reported: set[ast.AST] = set()
    for read, where in reads:
        if getattr(names.parents.get(read), "attr", "") in _STATIC:
            continue
        for maker, name, its_names in _creation_calls(context, read, where, makers):
            if maker not in reported and not any(part in host for part in its_names.ancestors(maker)):
                reported.add(maker)
                yield PipelineRead(maker if its_names is names else read, name)


def is_in_pipeline_graph(context: Context, node: ast.AST) -> bool:
    """Return True if an expression certainly runs in the graph of the input pipeline, not in Python that it calls."""
    return _is_traced(context.names, node, functions_traced_by_tf_data(context.names))


def _is_traced(names: Names, node: ast.AST, traced: frozenset[ast.AST]) -> bool:
    python = functions_called_as_python(names)
    around = (parent for parent in names.ancestors(node) if parent in traced or parent in python)
    return next(around, None) in traced


def _attribute_chain(node: ast.expr, names: Names) -> Iterator[ast.expr]:
    """Yield ``self.count`` and ``self.count.assign_add`` for ``self``."""
    parent = names.parents.get(node)
    while isinstance(parent, ast.Attribute) and isinstance(parent.ctx, ast.Load):
        yield parent
        parent = names.parents.get(parent)


def _layer_and_size_arguments(context: Context, call: Call) -> Iterator[ast.expr]:
    """Yield the layer of ``dataset.map(layer)`` and the sizes that methods of datasets take."""
    if _is_dataset_method(context, call, _MAP):
        yield from call.node.args[:1]
    elif _is_dataset_method(context, call, _SIZED):
        yield from values_of(call.node)


def _functions_mapped_elsewhere(names: Names) -> frozenset[ast.AST]:
    """Return the functions of a module that another file passes to tf.data."""
    project = names.project
    near = project.once(files_passing_to_data) & names.importing_files
    mapped = frozenset().union(*(project.once(functions_passed_to_data, user) for user in near))
    return frozenset(
        function.node
        for function in names.functions
        if isinstance(names.parents.get(function.node), ast.Module)
        and (names.path, getattr(function.node, "lineno")) in mapped
    )


def _is_dataset_method(context: Context, call: Call, methods: frozenset[str]) -> bool:
    function = call.node.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr in methods
        and context.types.type_of(function.value, call.where) == Type.DATASET
    )


def _creation_calls(
    context: Context, variable: ast.expr, where: Where, makers: frozenset[str]
) -> Iterator[tuple[ast.Call, str, Names]]:
    """Yield the calls that make the variable or layer that a name has, except those on the CPU."""
    for origin in origins(variable, where, context.names):
        node = origin.node
        if not isinstance(node, ast.Call):
            continue
        name = origin.resolve() or ""
        if name in _SEQUENTIAL:
            parts = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
            known = [(part, origin.names.resolve(part.func, origin.where) or "") for part in parts]
            node, name = next(((part, its_name) for part, its_name in known if its_name in makers), (node, name))
        if name in makers and not _is_on_cpu(context, origin.names, node, set()):
            yield node, name, origin.names


def _is_on_cpu(context: Context, names: Names, node: ast.AST, seen: set[ast.AST]) -> bool:
    """Return True if a call is in a context of the CPU, or if all calls of the function or class around it are.

    Args:
        context: the file with the input pipeline.
        names: of the module of the call.
        node: the call.
        seen: the functions and classes whose calls are being checked.
    """
    for parent in names.ancestors(node):
        if isinstance(parent, ast.With) and any(_is_cpu_scope(item.context_expr, names) for item in parent.items):
            return True
        is_class = isinstance(parent, ast.ClassDef)
        if is_class or isinstance(parent, ast.FunctionDef) and not isinstance(names.parents.get(parent), ast.ClassDef):
            if parent not in seen:
                seen.add(parent)
                calls = context.once(_calls_of, names, parent)
                if calls and all(_is_on_cpu(context, user, call, seen) for call, user in calls):
                    return True
            if is_class:
                return False
    return False


def _is_cpu_scope(entered: ast.expr, names: Names) -> bool:
    """Return True if variables made in a context are on the CPU: ``device('/CPU:0')``, or the scope of its strategy."""
    for scope in origins(entered, names.place(entered), names):
        calls = [scope]
        if (
            isinstance(scope.node, ast.Call)
            and isinstance(scope.node.func, ast.Attribute)
            and scope.node.func.attr == "scope"
        ):
            calls = list(origins(scope.node.func.value, scope.where, scope.names))
        for call in calls:
            if isinstance(call.node, ast.Call) and last_name(call.node.func) in ("device", "OneDeviceStrategy"):
                devices = [*call.node.args[:1], *(keyword.value for keyword in call.node.keywords)]
                known = [origin.node for device in devices for origin in origins(device, call.where, call.names)]
                if any("cpu" in str(constant_or(node, last_name(node))).lower() for node in known):
                    return True
    return False


def _calls_of(context: Context, names: Names, target: ast.FunctionDef | ast.ClassDef) -> list[tuple[ast.Call, Names]]:
    """Return the calls of a function, or of a class and those that derive from it, in the programs of a file.

    Calls in tests and in the function or class itself are not among them.
    """
    calls: list[tuple[ast.Call, Names]] = []
    classes: list[tuple[Names, ast.FunctionDef | ast.ClassDef]] = [(names, target)]
    for its_names, definition in classes:
        for mention, user in _mentions_of(context, its_names, definition):
            parent = user.parents.get(mention)
            if isinstance(parent, ast.Call) and parent.func is mention and not belongs_to_test(user, parent):
                calls.append((parent, user))
            elif isinstance(parent, ast.ClassDef) and mention in parent.bases and (user, parent) not in classes:
                classes.append((user, parent))
    return calls


def _mentions_of(
    context: Context, names: Names, target: ast.FunctionDef | ast.ClassDef
) -> Iterator[tuple[ast.AST, Names]]:
    """Yield the expressions that name a function or class, outside of it, in the programs of a file."""
    users = [names]
    if isinstance(names.parents.get(target), ast.Module):
        files = context.once(_files_of_programs)
        users += [user for user in modules_using(names, target.name) or () if user.path in files]
    for user in users:
        for word in user.once(_words_for, ResolvedName(target.name, names.path)):
            for mention in user.mentions(word):
                definition = user.definition(mention, user.place(mention))
                if definition is not None and definition.node is target and target not in user.ancestors(mention):
                    yield mention, user


def _words_for(names: Names, name: ResolvedName) -> list[str]:
    """Return the names that a module has for a function or class of the project."""
    return sorted({name.dotted, *(word for word in names.module.bindings if names.name_for_importers(word) == name)})


def _files_of_programs(context: Context) -> frozenset[str]:
    """Return the files of all programs that a file may belong to."""
    project, path = context.names.project, context.names.path
    return frozenset().union(*map(project.with_imports, project.with_importers([path])))
