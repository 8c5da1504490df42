"""Programs of TensorFlow 2 that ranks train with ``-d tf_strategy``: their training loops and strategies."""

from __future__ import annotations

import ast
import re
from typing import Callable, Iterable, Iterator, TypeVar

from ..project.context import Context
from ..semantics.model import Where
from ..semantics.module_index import ModuleIndex, Names
from ..semantics.tf_types import UPDATING_METHODS
from ..syntax.expressions import last_name
from .eager_training import uses_eager
from .opening import is_graph_mode_undecided
from .strategies import NAMES, NPU_STRATEGY, REPLICAS
from .tensorflow_version import is_tf2_program, version_verdict

DISTRIBUTE = "npu_shim.npu_device.distribute."
_COUNTS = frozenset({"range", "trange", "count"})
_WORDS = (b"apply_gradients", b"minimize", b"Strategy", b"get_strategy", b"horovod")
_BY_HAND = re.compile(rb"\bnpu(_device)?\.distribute\.")
_SEED = re.compile(rb"\bset_(random_)?seed\(")
_NUMPY = re.compile(rb"\b(np|numpy)\.random\.")
_NUMPY_SEED = re.compile(rb"\brandom\.seed\(|\bRandomState\(\w|\bdefault_rng\(\w|\bkeras\.utils\.set_random_seed\(")
_Answer = TypeVar("_Answer")
_MODEL = "tensorflow.keras.Model"


def may_be_eager_program(context: Context) -> bool:
    """Return True if a file is eager or may be, or its program runs on TensorFlow 2 or opens the device of it."""
    return (
        uses_eager(context)
        or is_tf2_program(context)
        or is_graph_mode_undecided(context)
        or version_verdict(context).opens
    )


def trains_on_ranks(context: Context) -> bool:
    """Return True if a file belongs to a program of TensorFlow 2 that ranks shall train."""
    if context.distributed != "tf_strategy" or not version_verdict(context).on_npu:
        return False
    return not any(_find_in_training_modules(context.names, _imports_horovod))


def shuffles_differently_per_rank(context: Context) -> bool:
    """Return True if ranks train a program together that sets no seed of TensorFlow, or none of NumPy but uses it.

    A seed that is set under a condition counts as none. A program that calls npu.distribute itself decides about its
    random numbers.
    """
    if not trains_on_ranks(context) or any(name.startswith(DISTRIBUTE) for name in context.called_names.values()):
        return False
    text = b"\n".join(_texts_of_program(context))
    return not _BY_HAND.search(text) and (
        not _always_calls(text, _SEED) or bool(_NUMPY.search(text)) and not _always_calls(text, _NUMPY_SEED)
    )


def _always_calls(text: bytes, function: re.Pattern[bytes]) -> bool:
    """Return True if a call of a function stands under no ``if``, but that of the main program."""
    lines = text.split(b"\n")
    return any(function.search(line) and not _is_line_in_if(lines, place) for place, line in enumerate(lines))


def _is_line_in_if(lines: list[bytes], place: int) -> bool:
    indentation: int | None = None
    for line in reversed(lines[: place + 1]):
        code = line.lstrip()
        own = len(line) - len(code)
        if code and (indentation is None or own < indentation):
            indentation = own
            if code.startswith((b"if ", b"elif ", b"else:")) and b"__main__" not in code:
                return True
    return False


def _texts_of_program(context: Context) -> Iterator[bytes]:
    """Yield the contents of a file and of all files that it imports."""
    yield context.source.text.encode("utf-8", "replace")
    yield from map(context.names.project.raw, sorted(context.names.imported_files))


def has_own_strategy(context: Context) -> bool:
    """Return True if the program of a file creates a strategy, which shards data and reduces gradients."""
    return any(_find_in_training_modules(context.names, _creates_strategy))


def has_custom_training_loop(context: Context) -> bool:
    """Return True if the program of a file applies gradients outside of Keras' fit()."""
    return any(_find_in_training_modules(context.names, _applies_outside_train_step))


def training_functions(context: Context) -> frozenset[str]:
    """Return the names of the functions and methods of the program that take a training step."""
    steps = frozenset().union(*_find_in_training_modules(context.names, _names_of_functions_applying_gradients))
    for _ in range(3):
        steps = steps.union(*_find_in_training_modules(context.names, _names_of_step_functions_calling, steps))
    return steps


def training_calls(body: Iterable[ast.AST], functions: frozenset[str]) -> list[ast.Call]:
    """Return the calls in some statements that apply gradients, or call one of some functions."""
    return [
        node
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and (is_application(node) or last_name(node.func) in functions)
    ]


def _find_in_training_modules(names: Names, find: Callable[..., _Answer], *args: object) -> Iterator[_Answer]:
    """Yield ``find(names, *args)`` of each module of the program of a file that may train or create a strategy."""
    yield names.once(find, *args)
    project = names.project
    for other in sorted(names.imported_files | names.importing_files):
        if project.once(_has_training_words, other):
            answer = project.once(_find_in_module, other, find, *args)
            if answer is not None:
                yield answer


def _has_training_words(project: ModuleIndex, path: str) -> bool:
    raw = project.raw(path)
    return any(word in raw for word in _WORDS)


def _find_in_module(project: ModuleIndex, path: str, find: Callable[..., _Answer], *args: object) -> _Answer | None:
    module = project.module(path) if project.may_concern_rules(project.raw(path), path) else None
    return find(module.names, *args) if module else None


def _imports_horovod(names: Names) -> bool:
    return any(
        binding.target.partition(".")[0] == "horovod" or binding.target.startswith("npu_shim.horovod")
        for bindings in names.module.bindings.values()
        for binding in bindings
        if binding.kind == "import"
    )


def _creates_strategy(names: Names) -> bool:
    return any(creates_strategy(names, call.node, call.where) for call in names.calls)


def creates_strategy(names: Names, call: ast.Call, where: Where) -> bool:
    """Return True if a call creates a strategy with synchronous replicas, or gets the default one to use its scope."""
    name = names.resolve(call.func, where) or ""
    return NAMES.get(name) == REPLICAS or name == NPU_STRATEGY or is_default_strategy(names, call, name)


def is_default_strategy(names: Names, call: ast.Call, name: str) -> bool:
    """Return True if a call gets the default strategy for a variable whose scope() the script enters."""
    statement = names.parents.get(call)
    if name != "tensorflow.distribute.get_strategy" or not isinstance(statement, ast.Assign):
        return False
    held = {ast.dump(target).replace("Store()", "Load()") for target in statement.targets}
    return any(
        isinstance(other.node.func, ast.Attribute)
        and other.node.func.attr == "scope"
        and ast.dump(other.node.func.value) in held
        for other in names.calls
    )


def is_application(node: ast.Call) -> bool:
    """Return True for a call of apply_gradients or minimize."""
    return isinstance(node.func, ast.Attribute) and node.func.attr in UPDATING_METHODS


def _applies_outside_train_step(names: Names) -> bool:
    return any(is_application(call.node) and not is_in_train_step(names, call.node) for call in names.calls)


def _names_of_functions_applying_gradients(names: Names) -> frozenset[str]:
    return frozenset(
        name
        for call in names.calls
        if is_application(call.node)
        for name in _names_of_step_functions_around(names, call.node)
    )


def _names_of_step_functions_calling(names: Names, functions: frozenset[str]) -> frozenset[str]:
    return frozenset(
        name
        for call in names.calls
        if last_name(call.node.func) in functions
        for name in _names_of_step_functions_around(names, call.node)
    )


def _names_of_step_functions_around(names: Names, node: ast.AST) -> Iterator[str]:
    """Yield the name of the function that takes a training step in a node: not one that loops over batches itself.

    Methods that Keras' fit() calls take no step of a loop.
    """
    if is_in_train_step(names, node):
        return
    for parent in names.ancestors(node):
        if isinstance(parent, ast.FunctionDef):
            yield parent.name
            return
        if isinstance(parent, ast.While) or isinstance(parent, ast.For) and not is_counter(parent.iter):
            return


def is_counter(iterable: ast.expr) -> bool:
    """Return True if a loop over an iterable only counts."""
    return isinstance(iterable, ast.Call) and last_name(iterable.func) in _COUNTS


def is_in_train_step(names: Names, node: ast.AST) -> bool:
    """Return True for code in the method train_step of a Keras model."""
    for parent in names.ancestors(node):
        owner = names.parents.get(parent)
        if isinstance(parent, ast.FunctionDef) and parent.name == "train_step" and isinstance(owner, ast.ClassDef):
            return _MODEL in names.outside_ancestors(owner)
    return False
