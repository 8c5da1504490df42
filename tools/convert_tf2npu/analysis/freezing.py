"""Find the code that freezes graphs, and the sessions that do nothing else."""

from __future__ import annotations

import ast

from ..project.context import Context
from ..syntax.expressions import last_name
from .device_placement import enclosing_function

# Functions that freeze a graph or save it for serving.
FREEZERS = frozenset(
    "tensorflow." + name
    for name in """graph_util.convert_variables_to_constants python.framework.graph_util.convert_variables_to_constants
python.framework.graph_util_impl.convert_variables_to_constants python.tools.freeze_graph.freeze_graph
python.tools.freeze_graph.freeze_graph_with_def_protos saved_model.simple_save saved_model.simple_save.simple_save
saved_model.Builder saved_model.builder.SavedModelBuilder
python.saved_model.builder.SavedModelBuilder""".split()
)
_WORDS = frozenset(name.rpartition(".")[2] for name in FREEZERS)
# What code that freezes does with its session: it has the variables, and passes them on.
_READS = frozenset({"graph", "graph_def", "close", "as_default"})
_TAKERS = frozenset(
    """restore save load assert_consumed run_restore_ops initialize_or_restore add_meta_graph_and_variables
get_checkpoint_state write_graph export_meta_graph""".split()
)
_INITIALIZERS = frozenset(
    """global_variables_initializer local_variables_initializer variables_initializer tables_initializer
initialize_all_variables initialize_all_tables""".split()
)
BLOCKS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)


def only_freezes(context: Context, node: ast.AST) -> bool:
    """Return True if a session restores variables for a graph that is frozen or saved, and runs nothing else.

    Args:
        context: the file.
        node: the call that makes the session.
    """
    if not any(word in context.source.text for word in _WORDS):
        return False
    names = context.names
    parent = names.parents.get(node)
    block = enclosing_function(context, node)
    if isinstance(parent, ast.With):
        target = next((item.optional_vars for item in parent.items if item.context_expr is node), None)
        block = parent
    elif isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        target = parent.targets[0]
    else:
        return False
    if target is not None and not isinstance(target, ast.Name):
        return False
    inside = [node for node in ast.walk(block) if isinstance(node, ast.Call)]
    if not any(last_name(call.func) in _WORDS for call in inside) or any(map(_evaluates_tensor, inside)):
        return False
    return target is None or all(
        _runs_only_initializers_and_savers(context, mention)
        for mention in names.mentions(target.id, names.place(node).scope.node)
        if isinstance(mention, ast.Name) and isinstance(mention.ctx, ast.Load) and block in names.ancestors(mention)
    )


def _freezes_graph(context: Context, call: ast.Call) -> bool:
    return last_name(call.func) in _WORDS and context.resolve(call.func, context.names.place(call)) in FREEZERS


def _evaluates_tensor(call: ast.Call) -> bool:
    """Return True for ``tensor.eval()``, which runs in the default session."""
    return last_name(call.func) == "eval"


def _runs_only_initializers_and_savers(context: Context, session: ast.Name) -> bool:
    """Return True if a use of a session runs nothing but initializers and savers."""
    names = context.names
    parent = names.parents.get(session)
    if isinstance(parent, ast.keyword):
        parent = names.parents.get(parent)
    if isinstance(parent, ast.Call):
        function = parent.func
        return last_name(function) in _TAKERS or _freezes_graph(context, parent)
    if not isinstance(parent, ast.Attribute):
        return False
    call = names.parents.get(parent)
    if parent.attr == "run" and isinstance(call, ast.Call) and len(call.args) == 1:
        return all(_fetches_initializer(context, fetch) for fetch in getattr(call.args[0], "elts", call.args))
    return parent.attr in _READS


def _fetches_initializer(context: Context, node: ast.expr) -> bool:
    """Return True if a fetch is the initializer of variables or tables, or a name of one."""
    if isinstance(node, ast.Name):
        bindings = context.names.bindings_of_name(node.id, context.names.place(node)) or ()
        return bool(bindings) and all(
            isinstance(binding.node, ast.Call) and _makes_initializer(binding.node) for binding in bindings
        )
    return isinstance(node, ast.Call) and _makes_initializer(node)


def _makes_initializer(call: ast.Call) -> bool:
    return last_name(call.func) in _INITIALIZERS
