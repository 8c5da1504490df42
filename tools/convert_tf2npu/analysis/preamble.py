"""Recognise the preamble of a script: the statements that prepare Python, the process and TensorFlow for the program.

The preamble sets environment variables, warnings, the import path, logging, seeds and the behavior of TensorFlow. Code
that needs its effects, such as an added import or an added session, follows it.
"""

from __future__ import annotations

import ast
import re
from typing import Callable, Iterable, Iterator, Sequence

from ..semantics.model import Where
from ..semantics.module_index import Names
from ..syntax.expressions import boxed_constant, last_name, values_of

FLAGS = ("absl.flags.", "ml_collections.config_flags.", "tensorflow.flags.", "tensorflow.app.flags.")
# The beginnings of the names of TensorFlow that set something and build nothing.
SETTINGS = (
    "absl.logging.",
    "tensorflow.autograph.set_",
    "tensorflow.config.",
    "tensorflow.debugging.disable_",
    "tensorflow.debugging.enable_",
    "tensorflow.debugging.set_",
    "tensorflow.disable_",
    "tensorflow.enable_",
    "tensorflow.get_logger",
    "tensorflow.keras.backend.clear_session",
    "tensorflow.keras.backend.set_",
    "tensorflow.keras.mixed_precision.experimental.set_",
    "tensorflow.keras.mixed_precision.set_",
    "tensorflow.keras.utils.disable_",
    "tensorflow.keras.utils.enable_",
    "tensorflow.keras.utils.set_random_seed",
    "tensorflow.logging.",
    "tensorflow.random.set_",
    "tensorflow.reset_default_graph",
    "tensorflow.set_random_seed",
    "tensorflow_datasets.disable_progress_bar",
)
# Calls of tf.config that fail when the device is open.
BEFORE_DEVICES = re.compile(
    r"tensorflow\.config\.(threading\.set_\w+|(experimental\.)?set_(memory_growth|visible_devices|"
    r"virtual_device_configuration|logical_device_configuration))"
)
_OTHER_SETTINGS = (
    "colored_traceback.",
    "faulthandler.",
    "gc.",
    "locale.setlocale",
    "logging.",
    "matplotlib.pyplot.switch_backend",
    "matplotlib.use",
    "multiprocessing.set_start_method",
    "numpy.random.seed",
    "numpy.set_printoptions",
    "numpy.seterr",
    "os.chdir",
    "os.environ.",
    "os.putenv",
    "os.unsetenv",
    "random.seed",
    "resource.setrlimit",
    "signal.signal",
    "site.addsitedir",
    "sys.path.",
    "sys.setrecursionlimit",
    "sys.stderr.",
    "sys.stdout.",
    "warnings.",
)
# Questions to TensorFlow and Horovod, which build nothing to answer them, and the start of Horovod.
_QUESTIONS = frozenset(
    """
tensorflow.__version__.startswith tensorflow.version.VERSION.startswith tensorflow.executing_eagerly
tensorflow.keras.mixed_precision.Policy tensorflow.keras.mixed_precision.experimental.Policy
tensorflow.python.client.device_lib.list_local_devices tensorflow.test.gpu_device_name
tensorflow.test.is_gpu_available horovod.init horovod.local_rank horovod.local_size horovod.rank horovod.size""".split()
)
# What describes something, and builds nothing until it is used.
_DESCRIPTIONS = frozenset(
    """
tensorflow.ConfigProto tensorflow.GPUOptions tensorflow.GraphOptions tensorflow.OptimizerOptions
tensorflow.TensorShape tensorflow.TensorSpec tensorflow.io.FixedLenFeature tensorflow.io.VarLenFeature
tensorflow.constant_initializer tensorflow.glorot_normal_initializer tensorflow.glorot_uniform_initializer
tensorflow.ones_initializer tensorflow.orthogonal_initializer tensorflow.random_normal_initializer
tensorflow.random_uniform_initializer tensorflow.truncated_normal_initializer
tensorflow.uniform_unit_scaling_initializer tensorflow.variance_scaling_initializer
tensorflow.zeros_initializer""".split()
)
_FILES = ("tensorflow.gfile.", "tensorflow.io.gfile.")
# Modules of Keras with classes that make no variables, and the registry of their names.
_PLAIN_KERAS = tuple(
    f"tensorflow.keras.{name}" for name in ("constraints.", "initializers.", "losses.", "regularizers.")
)
_REGISTRY = tuple(
    f"tensorflow.keras.{home}.{name}"
    for home in ("utils", "saving")
    for name in ("get_custom_objects", "register_keras_serializable")
)
_VALUE_NAMES = SETTINGS + FLAGS + _FILES + _PLAIN_KERAS + _REGISTRY
_VARIABLES = frozenset({"os.environ", "sys.path"})  # a script assigns to them or to their items
# Modules whose functions build nothing with TensorFlow: their results are paths, arguments, numbers, loggers.
_VALUES = frozenset(
    """argparse click collections configparser contextlib copy csv dataclasses datetime functools getpass glob hashlib
io itertools json logging math ml_collections numpy operator os pathlib pkg_resources platform pprint random re
shlex shutil socket string subprocess sys tempfile textwrap time traceback types typing uuid warnings yaml""".split()
)
_VALUE_CLASSES = frozenset({"transformers.HfArgumentParser", "typer.Typer"})
_BUILTINS = frozenset(
    """abs any all bool dict enumerate filter float getattr hasattr int isinstance len list map max min open print range
repr reversed round set sorted str sum tuple vars zip""".split()
)
# Methods of strings, lists and dictionaries, also of parameters.
_PLAIN_METHODS = frozenset(
    """append endswith format get items join keys lower replace rstrip split startswith strip upper values""".split()
)
# Functions of a project that only define or read arguments, as their names say.
_ARGUMENTS = re.compile(r"_*(add|declare|define|get|make|parse|read|register)(_\w+)?_(args|arguments|flags|options)")
_IMPORTS = (ast.Import, ast.ImportFrom)
_PASSED = (*_IMPORTS, ast.Delete, ast.Global, ast.Nonlocal, ast.Pass)


def is_setting(names: Names, statement: ast.stmt) -> bool:
    """Return True if a statement sets something for the program, or chooses between such settings."""
    return _Preamble().is_setting(names, statement)


def is_harmless(names: Names, statement: ast.stmt) -> bool:
    """Return True if a statement builds nothing with TensorFlow, such as a setting, an import or arguments."""
    return _Preamble().is_harmless(names, statement)


def is_flag(names: Names, statement: ast.stmt) -> bool:
    """Return True if a statement defines a command-line flag."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    return (names.resolve(statement.value.func, names.places[statement]) or "").startswith(FLAGS)


def is_value_without_effect(names: Names, node: ast.AST) -> bool:
    """Return True if no call in an expression builds something with TensorFlow."""
    return _Preamble().is_value_without_effect(names, node)


def last_device_setting(names: Names, statements: Sequence[ast.stmt]) -> int:
    """Return the index of the last statement that sets what TensorFlow fixes when it opens its devices; -1 without one.

    Only statements count before which no known call builds something: behind it, the setting fails or has no effect.
    """
    last = -1
    for index, statement in enumerate(statements):
        called = set(_called_names(names, statement, set()))
        if any(name.startswith("tensorflow.") and not _is_name_without_effect(name) for name in called):
            break
        if any(BEFORE_DEVICES.fullmatch(name) for name in called):
            last = index
    return last


def names_called_in(names: Names, statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names of the calls in statements, and in the functions and classes of the project that they call."""
    return {name for statement in statements for name in _called_names(names, statement, set())}


def _called_names(names: Names, node: ast.AST, followed: set[ast.AST]) -> Iterator[str]:
    """Yield the names of the calls in a statement, and in the functions and classes of the project that it calls."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, *_IMPORTS)):
        return
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call)):
        where = names.place(call)
        definition = names.definition(call.func, where)
        if definition is None:
            yield names.resolve(call.func, where) or ""
        elif definition.node not in followed:
            followed.add(definition.node)
            for inner in getattr(definition.node, "body", ()):
                yield from _called_names(definition.names, inner, followed)


def _is_name_without_effect(name: str) -> bool:
    return name in _QUESTIONS | _DESCRIPTIONS or name.startswith(_VALUE_NAMES)


def last_setting(
    names: Names, body: Sequence[ast.stmt], belongs_too: Callable[[ast.stmt], bool] = lambda statement: False
) -> int:
    """Return the index of the last setting of the preamble of a body; -1 if it has none.

    Args:
        names: of the module.
        body: the statements, of which the preamble is the beginning.
        belongs_too: tells which statements belong to the preamble besides those that are harmless.
    """
    last = -1
    for index, statement in enumerate(body):
        if is_setting(names, statement):
            last = index
        elif not belongs_too(statement) and not is_harmless(names, statement):
            break
    return last


class _Preamble:
    """One question about a statement. It follows each function and variable once."""

    def __init__(self) -> None:
        self._followed: set[ast.AST] = set()

    def is_setting(self, names: Names, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.If):
            return self._is_block_of_settings(
                names, statement.body + statement.orelse
            ) and self.is_value_without_effect(names, statement.test)
        if isinstance(statement, ast.For):
            return self._is_block_of_settings(
                names, statement.body + statement.orelse
            ) and self.is_value_without_effect(names, statement.iter)
        if isinstance(statement, ast.Try):
            handled = [s for handler in statement.handlers for s in handler.body]
            return self._is_block_of_settings(names, statement.body + statement.orelse + statement.finalbody, handled)
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete)):
            targets = getattr(statement, "targets", None) or [statement.target]  # type: ignore[union-attr]
            return all(self._is_setting_variable(names, target, names.places[statement]) for target in targets)
        return isinstance(statement, ast.Expr) and self._is_harmless_setting_call(
            names, statement.value, names.places[statement]
        )

    def is_harmless(self, names: Names, statement: ast.stmt) -> bool:
        if isinstance(statement, _PASSED) or self.is_setting(names, statement):
            return True
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)):
            return statement.value is None or self.is_value_without_effect(names, statement.value)
        if isinstance(statement, ast.Assert):
            return self.is_value_without_effect(names, statement)
        if isinstance(statement, (ast.If, ast.For, ast.With)):
            heads = [e for e in ast.iter_child_nodes(statement) if not isinstance(e, ast.stmt)]
            inner = statement.body + getattr(statement, "orelse", [])
            return all(self.is_value_without_effect(names, e) for e in heads) and all(
                self.is_harmless(names, s) or isinstance(s, ast.Raise) for s in inner
            )
        if isinstance(statement, ast.Try):
            handled = [s for handler in statement.handlers for s in handler.body]
            inner = statement.body + handled + statement.orelse + statement.finalbody
            return all(self.is_harmless(names, s) or isinstance(s, ast.Raise) for s in inner)
        return False

    def is_value_without_effect(self, names: Names, node: ast.AST) -> bool:
        """Return True if no call in an expression builds something with TensorFlow."""
        return all(self._is_value_call(names, n) for n in ast.walk(node) if isinstance(n, ast.Call))

    def _is_block_of_settings(
        self, names: Names, required: Iterable[ast.stmt], others: Iterable[ast.stmt] = ()
    ) -> bool:
        """Return True if a block has a setting, and nothing that builds something."""
        block = [*required, *others]
        return any(self.is_setting(names, s) for s in block) and all(self.is_harmless(names, s) for s in block)

    def _is_setting_variable(self, names: Names, target: ast.AST, where: Where) -> bool:
        if isinstance(target, ast.Subscript):
            target = target.value
        if not isinstance(target, ast.Attribute):
            return False
        # Not the name of the whole: in a script that assigns to sys.path, it may be anything.
        return f"{names.resolve(target.value, where)}.{target.attr}" in _VARIABLES

    def _is_harmless_setting_call(self, names: Names, node: ast.AST, where: Where) -> bool:
        """Return True if a call sets something, and its arguments build nothing."""
        if not isinstance(node, ast.Call):
            return False
        if not all(self.is_value_without_effect(names, value) for value in values_of(node)):
            return False
        name = names.resolve(node.func, where) or ""
        if name and names.definition(node.func, where) is None:
            return name.startswith(SETTINGS) or name.startswith(_OTHER_SETTINGS)
        if isinstance(node.func, ast.Attribute):  # tf.get_logger().setLevel(...), logger.setLevel(...)
            owner = node.func.value
            if isinstance(owner, ast.Name):
                values = self._calls_held_by_variable(names, owner, where)
                self._followed.update(value for value, _ in values)
                sets = any(self._is_harmless_setting_call(names, value, at) for value, at in values)
                self._followed.difference_update(value for value, _ in values)
                return sets
            if isinstance(owner, ast.Call):
                return self._is_harmless_setting_call(names, owner, where)
        return self._calls_harmless_function(names, node, where, any)

    def _is_value_call(self, names: Names, node: ast.Call) -> bool:
        where = names.place(node)
        if _ARGUMENTS.fullmatch(last_name(node.func) or ""):
            return True
        name = names.resolve(node.func, where)
        if name and names.definition(node.func, where) is None:
            return _is_name_without_effect(name) or name in _VALUE_CLASSES or name.partition(".")[0] in _VALUES
        its_class = names.class_definition(node.func, where)
        if its_class is not None:
            return any(base.startswith(_PLAIN_KERAS) for base in its_class.names.outside_ancestors(its_class.node))
        function = node.func
        if (
            isinstance(function, ast.Name)
            and function.id in _BUILTINS
            and names.bindings_of_name(function.id, where) is None
        ):
            return True
        if isinstance(function, ast.Attribute):
            owner = function.value
            while isinstance(owner, (ast.Attribute, ast.Subscript)):
                owner = owner.value
            if isinstance(owner, ast.Call) or function.attr in _PLAIN_METHODS:
                return True  # is_value_without_effect asks for the inner call itself
            if boxed_constant(owner) is not None:
                return True  # a method of a string
            if isinstance(owner, ast.Name):
                values = [value for value, _ in self._calls_held_by_variable(names, owner, where)]
                self._followed.update(values)  # dataset = dataset.map(f) holds itself
                plain = bool(values) and all(self.is_value_without_effect(names, value) for value in values)
                self._followed.difference_update(values)
                if plain:
                    return True
                if names.resolve(function.value, where) in _VARIABLES:
                    return True
        return self._calls_harmless_function(names, node, where, all)

    def _calls_held_by_variable(self, names: Names, name: ast.Name, where: Where) -> Sequence[tuple[ast.AST, Where]]:
        """Return the calls that a variable holds; nothing if it may hold something else."""
        bindings = names.bindings_of_name(name.id, where) or []
        calls = [(b.node, b.where) for b in bindings if b.kind == "value" and isinstance(b.node, ast.Call)]
        if len(calls) != len(bindings) or any(node in self._followed for node, _ in calls):
            return []
        return calls

    def _calls_harmless_function(
        self, names: Names, node: ast.Call, where: Where, needed: Callable[[Iterable[bool]], bool]
    ) -> bool:
        """Return True if a call runs a function of the project that builds nothing; with ``any``, one that sets too."""
        definition = names.function_definition(node.func, where)
        if definition is None or definition.node in self._followed:
            return False
        self._followed.add(definition.node)
        body = [
            s
            for s in definition.node.body
            if boxed_constant(getattr(s, "value", None)) is None or isinstance(s, ast.Return)
        ]
        theirs = definition.names
        inner = [s for s in body if not (isinstance(s, ast.FunctionDef) and not s.decorator_list)]
        result = all(self.is_harmless(theirs, s) for s in inner) and (
            needed is all or any(self.is_setting(theirs, s) for s in body)
        )
        self._followed.discard(definition.node)
        return result
