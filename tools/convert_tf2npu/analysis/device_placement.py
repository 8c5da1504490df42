"""Decide if the code of an expression runs on the NPU or on the host.

Functions passed to ``dataset.map`` run on the host, in whichever file of the project they are passed. Tests and serving
functions do not matter for training. Findings about the NPU do not report such code.
"""

from __future__ import annotations

import ast
import os
import re
from typing import AbstractSet, Iterable, Iterator, NamedTuple

from ..project.context import Context
from ..semantics.call_sites import modules_using
from ..semantics.model import Call, Where
from ..semantics.module_index import ModuleIndex, Names
from ..semantics.tf_types import PYTHON_CALLS, UPDATING_METHODS, Type
from ..semantics.value_flow import origins
from ..syntax.expressions import last_name, last_part, values_of
from ..syntax.words import has_words, spread_word_pattern

# Methods and functions of tf.data that run a function on the host.
_TAKERS = frozenset(
    """map flat_map interleave filter map_with_legacy_function scan take_while reduce
from_generator map_and_batch map_and_batch_with_legacy_function parallel_interleave group_by_window
bucket_by_sequence_length rejection_resample""".split()
)
_PASSING = re.compile(r"{}(?:{})\b".format(spread_word_pattern("."), "|".join(sorted(_TAKERS))).encode("ascii"))
_DATA = ("tensorflow.data.", "tensorflow.contrib.data.")
# Functions that run Python code in a graph, and keyword arguments that take input functions.
# ``standardize`` and ``split`` are the functions for the texts of TextVectorization.
_INPUTS = re.compile(r"(?:\w+_)?(?:input_fn|map_func|serving_input_receiver_fn|parse_fn|standardize)\Z|split\Z")
_SEQUENCE = "tensorflow.keras.utils.Sequence"
# Words in the names of functions and classes for input, serving or tests.
_HOST_WORDS = frozenset(
    """input_fn input_fns parse parser parsing preprocess preprocessing preprocessor augment
augmentation distort distorted dataset datasets reader record records tfrecord tfrecords serving
receiver pipeline example examples tokenize tokenizer crop csv jpeg loader""".split()
)
# Methods that train, and those that only use a trained model.
_TRAINS = UPDATING_METHODS | frozenset(
    "compute_gradients fit fit_generator get_updates search train train_and_evaluate train_on_batch".split()
)
# Libraries that have such methods, and train no variables of TensorFlow.
_OTHERS = frozenset("glob lightgbm regex re scipy skimage sklearn subprocess torch xgboost".split())
_PREDICTS = frozenset(
    """evaluate evaluate_generator predict predict_classes predict_generator predict_on_batch predict_proba
test_on_batch""".split()
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)


class _HostFunctions(NamedTuple):
    """Functions of a module that run on the host, with all that they call.

    Attributes:
        certain: tf.data certainly runs them.
        likely: a method runs them that has the name of one of tf.data.
        traced: those that tf.data certainly makes graphs of.
        python: those that tf.data or a graph calls as Python, without what they call.
    """

    certain: frozenset[ast.AST]
    likely: frozenset[ast.AST]
    traced: frozenset[ast.AST]
    python: frozenset[ast.AST]


def runs_on_npu(context: Context, node: ast.AST) -> bool:
    """Return True unless an expression is known to belong to input, serving or a test."""
    return may_run_on_npu(context.names, node)


def may_run_on_npu(names: Names, node: ast.AST) -> bool:
    """Return True unless an expression of a file of the project is known to belong to input, serving or a test."""
    around = next((parent for parent in names.ancestors(node) if isinstance(parent, _DEFINITIONS)), None)
    return names.once(_is_on_npu, around)


def _is_on_npu(names: Names, enclosing: ast.AST | None) -> bool:
    """Return True if the code of a function or class, or of the module, may run on the NPU."""
    return not _belongs_to_host([] if enclosing is None else [enclosing, *names.ancestors(enclosing)], names, set())


def is_in_map_function(context: Context, node: ast.AST) -> bool:
    """Return True if an expression certainly runs in tf.data, for each element."""
    certain = functions_in_tf_data(context.names)
    return any(parent in certain for parent in context.names.ancestors(node))


def functions_in_tf_data(names: Names) -> frozenset[ast.AST]:
    """Return the functions that certainly run in tf.data, for each element."""
    return names.once(_find_host_functions).certain


def functions_traced_by_tf_data(names: Names) -> frozenset[ast.AST]:
    """Return the functions that certainly run in the graph of tf.data, and not as Python that it calls."""
    return names.once(_find_host_functions).traced


def functions_called_as_python(names: Names) -> frozenset[ast.AST]:
    """Return the functions that tf.data and graphs call as Python: generators, and what ``tf.py_function`` takes."""
    return names.once(_find_host_functions).python


def is_in_test(context: Context, node: ast.AST) -> bool:
    """Return True if an expression of the file that is being converted belongs to a test."""
    return belongs_to_test(context.names, node)


def belongs_to_test(names: Names, node: ast.AST) -> bool:
    """Return True if an expression belongs to a test."""
    return (
        names.once(_is_test_or_preparation_file)
        and "test" in _words_of_name(os.path.basename(names.path))
        or any(isinstance(parent, ast.ClassDef) and _is_test_class(parent) for parent in names.ancestors(node))
    )


def is_test_file(path: str) -> bool:
    """Return True if the name of a file says that it is a test."""
    return "test" in _words_of_name(os.path.basename(path))


def only_serves_tests(context: Context) -> bool:
    """Return True if a file is a test, or only tests import it."""
    importers = context.names.project.direct_importers(context.names.path)
    return is_in_test(context, context.names.tree) or bool(importers) and all(map(is_test_file, importers))


def trains_with_imports(context: Context) -> bool:
    """Return True if a file, or a file that it imports, updates variables, and not only predicts or converts."""
    project, path = context.names.project, context.names.path
    return trains_itself(context) or any_file_updates_variables(project, project.with_imports(path))


def trains_itself(context: Context) -> bool:
    """Return True if a file updates variables, whatever the files that it imports do."""
    return any(word in context.source.text for word in ("train_op", "train_step")) or _updates_variables(context.names)


def only_predicts(context: Context) -> bool:
    """Return True if a file that no other imports predicts or evaluates, and neither it nor what it imports trains."""
    is_imported = bool(context.names.project.direct_importers(context.names.path))
    return context.names.once(_calls_any_method, _PREDICTS) and not is_imported and never_trains(context)


def never_trains(context: Context) -> bool:
    """Return True if nothing trains in a file, in the files that it imports, and in those that import it."""
    names, project, path = context.names, context.names.project, context.names.path
    if trains_itself(context) or names.once(_calls_any_method, _TRAINS):
        return False
    return not _any_file_calls_method(project, {*project.with_imports(path), *project.direct_importers(path)}, _TRAINS)


def any_file_updates_variables(project: ModuleIndex, paths: Iterable[str]) -> bool:
    """Return True if one of some files of a project updates variables."""
    return _any_file_calls_method(project, paths, UPDATING_METHODS)


def _any_file_calls_method(project: ModuleIndex, paths: Iterable[str], methods: frozenset[str]) -> bool:
    """Return True if one of some files calls one of some methods."""
    return any(project.once(_file_calls_method, path, methods) for path in sorted(paths))


def _file_calls_method(project: ModuleIndex, path: str, methods: frozenset[str]) -> bool:
    raw = project.raw(path) if path.endswith((".py", ".pyw")) else b""
    module = project.module(path) if has_words(raw, (f".{name}(".encode() for name in methods)) else None
    return module is not None and _calls_any_method(module.names, methods)


def _updates_variables(names: Names) -> bool:
    return names.once(_calls_any_method, UPDATING_METHODS)


def _calls_any_method(names: Names, methods: frozenset[str]) -> bool:
    """Return True if a file calls a method of one of some names, except those of libraries that train no variables."""
    return any(
        isinstance(call.node.func, ast.Attribute)
        and call.node.func.attr in methods
        and not is_function_of_other_library(call.node.func, call.where, names)
        for call in names.calls
    )


def is_function_of_other_library(function: ast.Attribute, where: Where, names: Names) -> bool:
    """Return True for a function of such a library, and a method of an object that it makes."""
    called = [names.resolve(function, where), *(origin.resolve() for origin in origins(function.value, where, names))]
    return any(name is not None and name.split(".")[0] in _OTHERS for name in called)


def is_first_call(context: Context, call: Call, names: frozenset[str], within: ast.AST, on_npu: bool = True) -> bool:
    """Return True if a call is the first one of some names.

    Args:
        context: the file.
        call: a call of one of the names.
        names: dotted names.
        within: the part of the file to search, such as its tree or a statement.
        on_npu: count only calls that may run on the NPU.
    """
    first = context.once(_first_calls, names, on_npu).get(within)
    return first is None or context.names.call_key(first)[1] >= context.names.call_key(call.node)[1]


def _first_calls(context: Context, names: frozenset[str], on_npu: bool) -> dict[ast.AST, ast.Call]:
    """Return the first call of one of some names in each part of a file that has one."""
    words = {last_part(name) for name in names}
    by_part: dict[ast.AST, ast.Call] = {}
    for call in context.names.calls:
        function = call.node.func
        if (
            last_name(function) in words
            and context.resolve(function, call.where) in names
            and (not on_npu or runs_on_npu(context, call.node))
        ):
            for around in context.names.ancestors(call.node):
                by_part.setdefault(around, call.node)
    return by_part


def enclosing_function(context: Context, node: ast.AST) -> ast.AST:
    """Return the innermost function around an expression, or the module."""
    return next((p for p in context.names.ancestors(node) if isinstance(p, _FUNCTIONS)), context.names.tree)


def _is_test_or_preparation_file(names: Names) -> bool:
    """Return True if the name or folder of a file says that it is a test or prepares data."""
    folder, name = os.path.split(names.path)
    words = _words_of_name(os.path.splitext(name)[0])
    return bool(
        words & (_HOST_WORDS | {"test", "tests"}) - {"crop"}
        or _words_of_name(os.path.basename(folder))
        & {"dataloader", "dataloaders", "generators", "datasets", "preprocessing", "tests"}
    )


def _words_of_name(name: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()))


def _is_test_class(node: ast.ClassDef) -> bool:
    bases = [last_name(base) for base in node.bases]
    return node.name.endswith(("Test", "TestCase")) or any(base.endswith(("Test", "TestCase")) for base in bases)


def _find_host_functions(names: Names) -> _HostFunctions:
    definitions: dict[str, list[ast.AST]] = {}
    for function in names.functions:
        if not isinstance(function.node, ast.Lambda):
            definitions.setdefault(function.node.name, []).append(function.node)
    certain: set[ast.AST] = set()
    likely: set[ast.AST] = set()
    traced: set[ast.AST] = set()
    python: set[ast.AST] = set()
    for call in names.calls:
        word = last_name(call.node.func)
        if word not in _TAKERS:
            for value in _python_function_arguments(word, call):
                functions = list(_passed_functions(value, definitions))
                likely.update(functions)
                python.update(functions if word in PYTHON_CALLS else ())
            continue
        sure = (names.resolve(call.node.func, call.where) or "").startswith(_DATA) or (
            isinstance(call.node.func, ast.Attribute)
            and names.types.type_of(call.node.func.value, call.where) == Type.DATASET
        )
        for value in values_of(call.node):
            for function_run in [*_passed_functions(value, definitions), *_called_methods(names, value, call.where)]:
                (certain if sure else likely).add(function_run)
                (python if word == "from_generator" else traced if sure else likely).add(function_run)
    called = _called_names_by_function(names)
    return _HostFunctions(
        _with_called_functions(certain, called, definitions),
        _with_called_functions(likely, called, definitions),
        _with_called_functions(traced, _called_names_by_function(names, python - traced), definitions),
        frozenset(python),
    )


def _python_function_arguments(word: str, call: Call) -> list[ast.expr]:
    """Return the arguments of a call outside of tf.data that are functions for Python or for input."""
    if word in PYTHON_CALLS:
        return call.node.args[:1] + [k.value for k in call.node.keywords if k.arg == "func"]
    return [k.value for k in call.node.keywords if k.arg and _INPUTS.match(k.arg)]


def _belongs_to_host(enclosing: Iterable[ast.AST], names: Names, seen: set[ast.AST]) -> bool:
    """Return True if code belongs to input, serving or a test.

    Args:
        enclosing: the nodes around it, the innermost first.
        names: name resolution in its module.
        seen: the functions whose uses are being checked.
    """
    if names.once(_is_test_or_preparation_file):
        return True
    host = names.once(_find_host_functions)
    for parent in enclosing:
        if parent in host.likely or parent in host.certain:
            return True
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if _words_of_name(parent.name) & _HOST_WORDS or "input_fn" in parent.name:
                return True
            if (
                parent.name.startswith("test")
                or isinstance(parent, ast.ClassDef)
                and (_is_test_class(parent) or _SEQUENCE in names.outside_ancestors(parent))
            ):
                return True
        if isinstance(parent, _FUNCTIONS) and _is_only_used_on_host(parent, names, seen):
            return True
    return False


def _is_only_used_on_host(function: ast.AST, names: Names, seen: set[ast.AST]) -> bool:
    """Return True if a function is passed to a call that runs it on the host, or used only in code on the host."""
    name = getattr(function, "name", "")
    defined = names.module.bindings.get(name, [])
    if not name or function in seen or len(defined) != 1 or defined[0].node is not function:
        return False
    seen.add(function)
    used = []
    for user in [names] + (modules_using(names, name) or []):
        for mention in user.mentions(name):
            definition = user.definition(mention, user.place(mention))
            if definition is not None and definition[0] is function:
                if _is_passed_to_host_call(mention, user):
                    return True
                used.append((mention, user))
    return bool(used) and all(_belongs_to_host(user.ancestors(mention), user, seen) for mention, user in used)


def files_passing_to_data(project: ModuleIndex) -> frozenset[str]:
    """Return the files that may pass a function to a method of a dataset."""
    return frozenset(path for path in project.paths if _PASSING.search(project.raw(path)))


def functions_passed_to_data(project: ModuleIndex, path: str) -> frozenset[tuple[str, int]]:
    """Return the functions of other files that a file passes to methods of datasets, directly or in a partial.

    Returns:
        the file and the line of each function, which stands at the top level there.
    """
    module = project.module(path)
    if module is None:
        return frozenset()
    passed: set[tuple[str, int]] = set()
    for call in module.names.calls:
        function = call.node.func
        if not isinstance(function, ast.Attribute) or function.attr not in _TAKERS:
            continue
        named = [part for value in values_of(call.node) for part in _parts_outside_calls(value)]
        if not named or module.types.type_of(function.value, call.where) != Type.DATASET:
            continue
        for part in named:
            defined = module.names.function_definition(part, module.names.place(part))
            if defined and defined.names.path != path and isinstance(defined.names.parents[defined.node], ast.Module):
                passed.add((defined.names.path, defined.node.lineno))
    return frozenset(passed)


def _parts_outside_calls(value: ast.AST) -> Iterator[ast.AST]:
    """Yield the names and attributes in an expression, except in calls other than of a partial."""
    if isinstance(value, (ast.Name, ast.Attribute)):
        yield value
    elif not isinstance(value, ast.Call) or last_name(value.func) == "partial":
        for part in ast.iter_child_nodes(value):
            yield from _parts_outside_calls(part)


def _is_passed_to_host_call(mention: ast.AST, names: Names) -> bool:
    """Return True if a mention of a function passes it to tf.data, to Python, or as an input function."""
    child = mention
    for parent in names.ancestors(mention):
        if isinstance(parent, ast.keyword) and _INPUTS.match(parent.arg or ""):
            return True
        if isinstance(parent, ast.Call) and child is not parent.func:
            word = last_name(parent.func)
            if word != "partial":
                return word in _TAKERS or word in PYTHON_CALLS
        elif not isinstance(parent, ast.keyword):
            return False
        child = parent
    return False


def _passed_functions(value: ast.expr, definitions: dict[str, list[ast.AST]]) -> Iterator[ast.AST]:
    """Yield the functions that an argument may be: by name, as a lambda, through functools.partial."""
    if isinstance(value, ast.Lambda):
        yield value
    elif isinstance(value, (ast.Name, ast.Attribute)):
        named = definitions.get(last_name(value), [])
        if len(named) == 1:
            yield named[0]
    elif (
        isinstance(value, ast.Call)
        and value.args
        and "partial" in (getattr(value.func, "attr", ""), getattr(value.func, "id", ""))
    ):
        yield from _passed_functions(value.args[0], definitions)


def _called_methods(names: Names, value: ast.expr, where: Where) -> list[ast.FunctionDef]:
    """Return the methods that a call of an object runs: of ``Augment()``, or of a variable that holds it."""
    binding = names.only_binding(value, where, "value")
    if binding is not None and isinstance(binding.node, ast.Call):
        value, where = binding.node, binding.where
    its_class = names.class_definition(value.func, where) if isinstance(value, ast.Call) else None
    if its_class is None or its_class.names is not names:
        return []
    return [
        node for node in its_class.node.body if isinstance(node, ast.FunctionDef) and node.name in ("call", "__call__")
    ]


def _called_names_by_function(names: Names, outermost: AbstractSet[ast.AST] = frozenset()) -> dict[ast.AST, set[str]]:
    """Return the names that each function calls, also in functions in it, except in those that are outermost."""
    called: dict[ast.AST, set[str]] = {}
    for call in names.calls:
        word = _name_of_own_call(call.node.func)
        if word:
            for parent in names.ancestors(call.node):
                if isinstance(parent, _FUNCTIONS):
                    called.setdefault(parent, set()).add(word)
                if parent in outermost:
                    break
    return called


def _name_of_own_call(function: ast.expr) -> str:
    """Return ``f`` for ``f(...)`` and ``self.f(...)``, and "" for calls of other files."""
    if isinstance(function, ast.Name):
        return function.id
    if (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id in ("self", "cls")
    ):
        return function.attr
    return ""


def _with_called_functions(
    functions: set[ast.AST], called: dict[ast.AST, set[str]], definitions: dict[str, list[ast.AST]]
) -> frozenset[ast.AST]:
    """Return functions and all functions that they call."""
    closed = set(functions)
    todo = list(functions)
    while todo:
        for word in called.get(todo.pop(), ()):
            for definition in definitions.get(word, ()):
                if len(definitions[word]) == 1 and definition not in closed:
                    closed.add(definition)
                    todo.append(definition)
    return frozenset(closed)
