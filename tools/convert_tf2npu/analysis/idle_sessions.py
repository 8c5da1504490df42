"""Find sessions of tf.compat.v1 that nothing runs. Programs of TensorFlow 2 make them for the memory of GPUs."""

from __future__ import annotations

import ast
import enum

from ..semantics.call_sites import modules_using
from ..semantics.model import Where
from ..semantics.module_index import Names
from ..syntax.expressions import last_part
from ..tf_api.canonical_names import canonical_name, is_tf1_name

_SESSION = "tensorflow.Session"
_MAKERS = frozenset({_SESSION, "tensorflow.InteractiveSession"})
SET_SESSION = "tensorflow.keras.backend.set_session"
# Calls that may use a session which they are not given.
_DEFAULTS = frozenset({"get_default_session", "get_session", "eval"})


class Use(enum.Enum):
    """The use of a session: by nothing, by Keras in graph mode only, or by the program."""

    NOTHING, KERAS_IN_GRAPHS, PROGRAM = range(3)


def use_of_session(names: Names, node: ast.AST) -> Use:
    """Return the use of the session of tf.compat.v1 that a call makes, or that it gives Keras.

    Args:
        names: of the file.
        node: an expression. What is no such call counts as a session that the program uses.
    """
    return names.once(_find_use_of_session, node)


def _find_use_of_session(names: Names, node: ast.AST) -> Use:
    if not isinstance(node, ast.Call):
        return Use.PROGRAM
    where = names.place(node)
    spelled = names.spelled_name(node.func, where) or ""
    if not is_tf1_name(spelled):
        return Use.PROGRAM
    name = canonical_name(spelled)
    if name == SET_SESSION and len(node.args) == 1 and not node.keywords:
        use = _assigned_value(names, node.args[0], where)
        return Use.PROGRAM if use is None else use_of_session(names, use)
    given_config = [keyword.arg for keyword in node.keywords] == ["config"]
    if name not in _MAKERS or node.args or not (given_config or name == _SESSION and not node.keywords):
        return Use.PROGRAM
    if any(getattr(call.node.func, "attr", getattr(call.node.func, "id", "")) in _DEFAULTS for call in names.calls):
        return Use.PROGRAM
    given = _is_given_to_keras(names, node)
    if given is None:
        return Use.PROGRAM
    return Use.KERAS_IN_GRAPHS if given or last_part(name) == "InteractiveSession" else Use.NOTHING


def _assigned_value(names: Names, node: ast.expr, where: Where) -> ast.AST | None:
    """Return the expression of which a value is, if there is one."""
    if not isinstance(node, ast.Name):
        return node
    binding = names.only_binding(node, where, "value")
    return binding.node if binding is not None else None


def _is_given_to_keras(names: Names, node: ast.Call) -> bool | None:
    """Return True if a session is given to Keras; None if it has other uses."""
    parent = names.parents.get(node)
    if isinstance(parent, ast.Expr):
        return False
    if _sets_keras_session(names, parent):
        return True
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or not isinstance(parent.targets[0], ast.Name):
        return None
    word = parent.targets[0].id
    if names.places[parent].scope.node is names.tree:
        users = modules_using(names, word)  # with those that import all names, and need not mention this one
        if users is None or any(True for user in users for _ in user.mentions(word)):
            return None
    given = False
    for mention in names.mentions(word):
        if mention is parent.targets[0] or not isinstance(mention, ast.Name):
            continue
        if not any(binding.node is node for binding in names.bindings_of_name(word, names.place(mention)) or ()):
            continue
        if _sets_keras_session(names, names.parents.get(mention)):
            given = True
        elif not _only_closes_session(names, mention):
            return None
    return given


def _sets_keras_session(names: Names, node: ast.AST | None) -> bool:
    """Return True if an expression gives Keras a session."""
    return isinstance(node, ast.Call) and names.resolve(node.func, names.place(node)) == SET_SESSION


def _only_closes_session(names: Names, mention: ast.Name) -> bool:
    """Return True if a mention of a session ends it, and does nothing else."""
    parent = names.parents.get(mention)
    return isinstance(parent, ast.Delete) or isinstance(parent, ast.Attribute) and parent.attr == "close"
