"""Values of Python that a program may change while it trains, as far as the files around a file show it.

A graph keeps such a value as it was when the graph was made.
"""

from __future__ import annotations

import ast

from ..project.context import Context
from ..semantics.module_index import Names
from ..semantics.tf_types import METHODS_RUN_ONCE
from ..syntax.expressions import boxed_constant, last_name
from .surrounding_files import names_of_surrounding_files

BUILTINS = frozenset("dict enumerate len list range reversed tuple zip None True False".split())
OF_LAYERS = frozenset("trainable_variables trainable_weights variables weights".split())
RATES = frozenset({"lr", "learning_rate"})  # attributes of Keras' optimizers that are variables
_BINDINGS = frozenset({"import", "value", "part", "with", "def", "class", "arg"})
_HIDDEN = frozenset(
    "__dict__ __import__ __setattr__ delattr exec globals import_module reload set_default setattr".split()
)
_SETTERS = frozenset({"set_epsilon", "set_learning_phase"})  # functions that set what layers of Keras read
_SCHEDULES = ("Decay", "Schedule", "schedules")
# Methods that change what they belong to.
_CHANGES = frozenset(
    "append appendleft clear extend fill insert pop popitem popleft remove reverse setdefault sort update".split()
)
# Methods of Keras, and the attributes that they set, or that stand for what they set.
_SETTING_METHODS = {"adapt": ("adapt",), "compile": ("compiled_loss", "compiled_metrics", "loss", "optimizer")}
_FRESH = (ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Call, ast.BinOp)  # values that no other code has
_READING_METHODS = frozenset("apply_gradients gradient items keys minimize values watch".split())


def never_changes(names: Names, node: ast.Name) -> bool:
    """Return True if a name outside a function is bound once, and not in a loop."""
    bindings = names.bindings_of_name(node.id, names.place(node))
    if bindings is None:
        return node.id in BUILTINS
    if len(bindings) != 1 or bindings[0].kind not in _BINDINGS or node.id in names.once(_names_declared_global):
        return False
    return bindings[0].kind in ("import", "arg") or not is_in_loop(names, bindings[0].node)


def _names_declared_global(names: Names) -> frozenset[str]:
    """Return the names that functions of a file declare as global or nonlocal."""
    return frozenset(
        name for node in ast.walk(names.tree) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
    )


def stays(context: Context, node: ast.AST) -> bool:
    """Return True for a part of an expression that is a constant, or a name or an attribute that never changes."""
    if isinstance(node, ast.Name):
        return never_changes(context.names, node)
    if isinstance(node, ast.Attribute):
        attributes = [node.attr, "trainable"] if node.attr.startswith("trainable") else [node.attr]
        return context.once(assigned_attributes).isdisjoint(attributes)
    return not isinstance(node, (ast.Call, ast.Subscript))


def is_bound_in_loop(name: str, loop: ast.stmt) -> bool:
    """Return True if a loop binds a name."""
    return any(
        isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load) for node in ast.walk(loop)
    )


def is_in_loop(names: Names, node: ast.AST | None) -> bool:
    """Return True if a node is in a loop of its function."""
    for parent in names.ancestors(node) if node is not None else ():
        if isinstance(parent, (ast.FunctionDef, ast.Lambda)):
            return False
        if isinstance(parent, (ast.For, ast.While)):
            return True
    return False


def assigned_attributes(context: Context) -> frozenset[str]:
    """Return the attributes that may change while a program trains, as far as the files around a file show it.

    They are assigned or changed in place outside of the making of objects, are properties, or names of modules that
    functions bind, or are set by a method of Keras.
    """
    assigned = set(context.once(words_changed_in_place))
    for theirs in context.once(names_of_surrounding_files):
        assigned |= theirs.once(_names_declared_global)
        assigned |= theirs.once(_attributes_set_again)
        for attribute, held in theirs.attributes.items():
            if not all(_is_in_making(theirs, assignment.target) for assignment in held):
                assigned.add(attribute)
        for node in ast.walk(theirs.tree):
            if isinstance(node, ast.FunctionDef) and not all(map(_keeps_method, node.decorator_list)):
                assigned.add(node.name)
    return frozenset(assigned)


def _attributes_set_again(names: Names) -> frozenset[str]:
    """Return the attributes of models and layers that methods set which a file may call several times on an object."""
    called: set[tuple[str, str]] = set()
    attributes: set[str] = set()
    for node in ast.walk(names.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SETTING_METHODS:
            owner, method = node.func.value, node.func.attr
            if isinstance(owner, ast.Name) and owner.id in names.once(_names_imported):
                continue  # such as re.compile()
            is_first = (last_name(owner), method) not in called and not is_in_loop(names, node)
            if not is_first or not (_is_own(names, owner) or _is_in_making(names, node.func)):
                attributes.update(_SETTING_METHODS[method])
            called.add((last_name(owner), method))
    return frozenset(attributes)


def _names_imported(names: Names) -> frozenset[str]:
    return frozenset(
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(names.tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    )


def _keeps_method(decorator: ast.expr) -> bool:
    """Return True for a decorator whose methods are called, unlike properties."""
    return last_name(getattr(decorator, "func", decorator)) in (
        "abstractmethod",
        "classmethod",
        "function",
        "staticmethod",
    )


def names_assigned_of_modules(context: Context) -> frozenset[str]:
    """Return the names that files around a file assign as attributes of modules."""
    return frozenset(
        attribute
        for theirs in context.once(names_of_surrounding_files)
        for attribute, held in theirs.attributes.items()
        if any(_is_of_module(theirs, assignment.target.value) for assignment in held)
    )


def _is_of_module(names: Names, node: ast.expr) -> bool:
    """Return True if an expression may be a module: an imported name, or what is not a name of the file."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name):
        return True
    bindings = names.bindings_of_name(node.id, names.place(node)) or ()
    return any(binding.kind == "import" for binding in bindings)


def changes_in_hidden_ways(context: Context) -> bool:
    """Return True if the files around a file may assign attributes by other ways than assignments.

    So does an optimizer with a schedule of Keras 2 that gets another learning rate: it is a number, and no variable.
    An object may be made again, by a call of ``__init__``, and a flag of absl is set by ``FLAGS["name"].value``.
    """
    rates = not RATES.isdisjoint(
        attribute
        for theirs in context.once(names_of_surrounding_files)
        for attribute, held in theirs.attributes.items()
        if not all(_is_in_making(theirs, assignment.target) for assignment in held)
    )
    set_once: set[str] = set()
    for theirs in context.once(names_of_surrounding_files):
        for node in ast.walk(theirs.tree):
            word = last_name(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
            if word in _SETTERS and (word in set_once or _may_set_again(theirs, node)):
                return True
            set_once.add(word)
            is_flag = word == "value" and isinstance(getattr(node, "value", None), ast.Subscript)
            if is_flag and not isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
                return True
            if word == "__init__" and _makes_again(theirs, node):
                return True
            if word in _HIDDEN or rates and word.endswith(_SCHEDULES):
                return True
    return "vars" in context.once(words_changed_in_place)


def _may_set_again(names: Names, node: ast.AST) -> bool:
    """Return True if a call of a function is in a loop, or passes on what a function gets."""
    call = names.parents[node]
    given = [*call.args, *(keyword.value for keyword in call.keywords)] if isinstance(call, ast.Call) else []
    is_constant = all(boxed_constant(value) is not None for value in given)
    is_in_function = any(isinstance(parent, ast.FunctionDef) for parent in names.ancestors(node))
    return is_in_loop(names, node) or is_in_function and not is_constant


def _makes_again(names: Names, node: ast.AST) -> bool:
    """Return True if the ``__init__`` of an object is called elsewhere than in that of a derived class."""
    return isinstance(names.parents[node], ast.Call) and not any(
        isinstance(parent, ast.FunctionDef) and parent.name == "__init__" for parent in names.ancestors(node)
    )


def words_changed_in_place(context: Context) -> frozenset[str]:
    """Return the last words of what the files around a file change in place, such as lists that grow."""
    words: set[str] = set()
    for theirs in context.once(names_of_surrounding_files):
        for node in ast.walk(theirs.tree):
            is_stored = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
            is_changed = isinstance(node, ast.Attribute) and node.attr in _CHANGES
            if is_stored or is_changed or _adds_layer(node) and not _is_own(theirs, node.func.value):  # type: ignore[attr-defined]
                changed = node.func if isinstance(node, ast.Call) else node
                if not _is_in_making(theirs, changed):  # type: ignore[arg-type]
                    words.add(last_name(changed.value))  # type: ignore[attr-defined]
    return frozenset(words)


def adds_layers(loop: ast.stmt) -> bool:
    """Return True if a loop adds layers to a model."""
    return any(map(_adds_layer, ast.walk(loop)))


def _adds_layer(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "add"
        and any(isinstance(argument, ast.Call) for argument in node.args)
    )


def _is_own(names: Names, node: ast.expr) -> bool:
    """Return True for a name that the code around it binds."""
    bindings = names.bindings_of_name(node.id, names.place(node)) or () if isinstance(node, ast.Name) else ()
    scope = names.place(node).scope
    return bool(bindings) and all(binding.kind == "value" and binding.where.scope is scope for binding in bindings)


def _is_in_making(names: Names, node: ast.expr) -> bool:
    """Return True if a function that makes an object changes it there, or what it has made itself."""
    function = next((parent for parent in names.ancestors(node) if isinstance(parent, ast.FunctionDef)), None)
    if function is None or function.name not in METHODS_RUN_ONCE or not function.args.args:
        return False
    owner = names.parents[function]
    is_of_keras = isinstance(owner, ast.ClassDef) and any(
        base.startswith(("tensorflow.", "keras.")) for base in names.outside_ancestors(owner)
    )
    if function.name != "__init__" and not is_of_keras:
        return False
    root: ast.AST = node
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if not isinstance(root, ast.Name):
        return False
    binding = names.only_binding(root, names.place(root), "value")
    is_own = binding is not None and binding.where.scope.node is function and isinstance(binding.node, _FRESH)
    return is_own or root.id == function.args.args[0].arg


def is_shared_list(context: Context, word: str, functions: list[ast.FunctionDef]) -> bool:
    """Return True if code may change a list or a dictionary by another name than its own, or changes it.

    Args:
        context: the file of a step that reads it.
        word: its name, or its last one.
        functions: around the step.
    """
    return word in context.once(words_changed_in_place) or any(
        not _keeps_list(theirs, node, functions)
        for theirs in context.once(names_of_surrounding_files)
        for node in ast.walk(theirs.tree)
        if isinstance(node, (ast.Name, ast.Attribute)) and last_name(node) == word
    )


def _keeps_list(names: Names, node: ast.Name | ast.Attribute, functions: list[ast.FunctionDef]) -> bool:
    """Return True if an expression makes a list, or reads it and passes it to no code of the project."""
    parent = names.parents[node]
    if not isinstance(node.ctx, ast.Load):
        is_fresh = isinstance(parent, ast.Assign) and (
            isinstance(parent.value, _FRESH) or last_name(parent.value) in OF_LAYERS
        )
        return is_fresh and len(parent.targets) == 1  # type: ignore[attr-defined]
    bindings = names.bindings_of_name(node.id, names.place(node)) or () if isinstance(node, ast.Name) else ()
    if bindings and all(binding.kind == "arg" for binding in bindings):  # what is passed is mentioned where it is
        return all(binding.where.scope.node not in functions for binding in bindings)
    if isinstance(parent, ast.keyword):
        parent = names.parents[parent]
    if isinstance(parent, ast.Call):
        name = names.resolve(parent.func, names.place(parent)) or ""
        return (
            name.startswith("tensorflow.")
            or last_name(parent.func) in _READING_METHODS
            or isinstance(parent.func, ast.Name)
            and parent.func.id in BUILTINS | {"print", "set", "sorted", "sum"}
        )
    if isinstance(parent, ast.Attribute):
        return parent.attr in _READING_METHODS
    is_value = isinstance(parent, ast.Subscript) and parent.value is node
    return is_value or isinstance(parent, (ast.For, ast.comprehension, ast.BinOp, ast.Compare))
