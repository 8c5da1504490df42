"""Find what in a file shows the version of TensorFlow that it speaks."""

from __future__ import annotations

import ast
import enum
import functools
from typing import Iterable, Iterator, NamedTuple

from ..semantics.model import Call, Scope, Where
from ..semantics.module_index import Names
from ..semantics.tf_types import SESSIONS, TRAINING_METHODS, Type
from ..syntax.expressions import last_name, last_part
from ..tf_api.canonical_names import canonical_name, is_known_tf2_spelling, is_standalone_keras, is_tf1_name
from ..tf_api.forms_in_26 import has_backport
from ..tf_api.v1_fate import NEW, NOWHERE, OF_CONTRIB, ONLY_IN_V1, fate_of_v1_name, name_below_tensorflow
from .compiled_models import is_compiled
from .idle_sessions import SET_SESSION, Use, use_of_session

# Arguments that fit has in Keras and hardly anywhere else.
_OF_FIT = frozenset({"epochs", "nb_epoch", "steps_per_epoch", "validation_data", "validation_split"})
_TAPE = "tensorflow.GradientTape"
_GRADIENTS = "tensorflow.gradients"  # also in a tf.function
_EAGER = frozenset({_TAPE, "tensorflow.function", "tensorflow.config.run_functions_eagerly"})
OPEN = frozenset({"npu_shim.npu_device.open", "npu_shim.npu_device.npu_device.open"})
# Names of compat.v1 that build a graph, or switch to graphs.
_GRAPHS = (
    "tensorflow.contrib.",
    "tensorflow.disable_eager_execution",
    "tensorflow.disable_v2_behavior",
    "tensorflow.estimator.",
    "tensorflow.get_variable",
    "tensorflow.global_variables_initializer",
    "tensorflow.layers.",
    "tensorflow.placeholder",
    "tensorflow.train.MonitoredSession",
    "tensorflow.train.MonitoredTrainingSession",
    "tensorflow.train.Supervisor",
)
# Those of compat.v1 that run in eager code, too.
_ALSO_EAGER = ("tensorflow.get_variable", "tensorflow.layers.")
_CONTRIB = "tensorflow.contrib"
# Names of estimators that eager loops use, too.
_BOTH = frozenset(f"tensorflow.{home}.SecondOrStepTimer" for home in ("estimator", "train"))
ENABLING = frozenset(
    f"tensorflow.{home}{name}"
    for home in ("", "contrib.eager.")
    for name in ("enable_eager_execution", "enable_v2_behavior")
)
_SESSIONS = SESSIONS | {SET_SESSION}
# Names that the tool writes in place of names of version 1, so that a second run finds the same version.
_REPLACING = frozenset(
    "npu_shim.npu_init." + name
    for name in """NPUEstimator NPUEstimatorSpec NPUDistributedOptimizer NPURunConfig
ExponentialUpdateLossScaleManager FixedLossScaleManager NPULossScaleOptimizer npu_keras_optimizer
keras_to_npu.model_to_npu_estimator npu_tf_optimizer""".split()
)
# Names that the tool adds because of other evidence. They are no evidence for other files, so that a second run finds
# the same versions.
_ADDED = frozenset(
    "npu_shim.npu_init." + name
    for name in """npu_callbacks_append npu_clear_session npu_config_proto npu_hooks_append
npu_run_config_init set_keras_session_npu_config""".split()
)
_BACKPORTS = "npu_shim.backports."  # in place of names of version 2
_DROPOUTS = frozenset({"tensorflow.contrib.layers.dropout", "tensorflow.layers.dropout", "tensorflow.nn.dropout"})
_KERAS = frozenset(
    "tensorflow.keras." + name
    for name in ("backend.get_session", "estimator.model_to_estimator", "layers.CuDNNGRU", "layers.CuDNNLSTM")
)
# Names of Keras as a package of its own, and arguments of its methods, up to the last version for TensorFlow 1.
_KERAS_PACKAGE = tuple(
    "tensorflow.keras." + name
    for name in """backend.get_session backend.set_session backend.tensorflow_backend engine.topology legacy.
objectives""".split()
)
_KERAS_ARGUMENTS = frozenset({"border_mode", "nb_epoch", "samples_per_epoch"})
_MISSING = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError"})
_SEQUENCES = frozenset({"enumerate", "range", "reversed", "sorted", "xrange", "zip"})
_VERSIONS = frozenset({"__version__", "VERSION"})
# The first versions of TensorFlow 2 have them too, as tensorflow.compat.v2 of TensorFlow 1.15 shows.
_OF_EARLY_2 = frozenset(
    "tensorflow." + name
    for name in """config.experimental_list_devices data.experimental.MapVectorizationOptions
data.experimental.StatsAggregator data.experimental.StatsOptions data.experimental.bytes_produced_stats
data.experimental.latency_stats experimental.function_executor_type train.experimental.DynamicLossScale
train.experimental.FixedLossScale train.experimental.LossScale
train.experimental.disable_mixed_precision_graph_rewrite
train.experimental.enable_mixed_precision_graph_rewrite""".split()
)
_ENABLES = ("tensorflow.enable_", "tensorflow.logging", "tensorflow.ConfigProto", "tensorflow.GPUOptions")


class Kind(enum.Enum):
    """The kind of a piece of evidence.

    Attributes:
        ONLY_ONE: a name that TensorFlow 2 does not have.
        ONE: a name that builds a graph.
        WEAK: one that eager programs use, too: of variables, or in a graph of its own.
        SESSION: a session of compat.v1 that the program may run.
        EAGER: a tape or a tf.function.
        ONLY_TWO: a name that TensorFlow 1 does not have.
        VALUE: the value of a tensor, or a loop over a dataset.
        ENABLES: a call that enables eager execution in version 1.
        TRAINS: a call that trains a Keras model, or computes gradients eagerly.
        GRADIENTS: tf.gradients, which trains in a tf.function, too.
        OPENS: a call that opens the NPU device.
        ADDED: a name that the tool adds to programs of version 1.
    """

    ONLY_ONE, ONE, WEAK, SESSION, EAGER, ONLY_TWO, VALUE, ENABLES, TRAINS, GRADIENTS, OPENS, ADDED = range(12)


class Evidence(NamedTuple):
    """A name in a file that shows the version, as scripts write it."""

    name: str
    path: str
    line: int
    kind: Kind


class FileEvidence:
    """The evidence in a file, or in the parts of it that a program reaches.

    Args:
        pieces: them, in the order of the file.

    Attributes:
        one: of version 1, in which the program builds graphs.
        weak: weak evidence of version 1, which shows it where nothing is eager.
        session: a session of compat.v1 that the program may run.
        eager: of a tape or a tf.function.
        two: of version 2.
        trains: the file trains a Keras model, or computes gradients eagerly or in a tf.function.
        opens: the file opens the NPU device.
        added: a name that the tool adds to programs of version 1; it decides for this file if nothing else does.
    """

    def __init__(self, pieces: Iterable[Evidence]) -> None:
        self.pieces = tuple(pieces)
        first: dict[Kind, Evidence] = {}
        for piece in self.pieces:
            first.setdefault(piece.kind, piece)
        graphs = [first[kind] for kind in (Kind.ONLY_ONE, Kind.ONE) if kind in first]
        self.eager = first.get(Kind.EAGER)
        self.one = min(graphs, key=lambda piece: piece.line) if graphs else None
        self.weak = first.get(Kind.WEAK)
        self.one = self.one or (self.weak if self.eager is None else None)
        self.only_one = first.get(Kind.ONLY_ONE)
        self.only_two = first.get(Kind.ONLY_TWO)
        self.two = self.eager or self.only_two or first.get(Kind.VALUE)
        self.session = first.get(Kind.SESSION)
        self.added = first.get(Kind.ADDED)
        self.enables = Kind.ENABLES in first
        self.opens = Kind.OPENS in first
        self.trains = Kind.TRAINS in first or self.eager is not None and Kind.GRADIENTS in first

    @property
    def is_clear(self) -> bool:
        """True if the file shows exactly one version."""
        return (self.one is None) != (self.two is None)


def evidence_of(names: Names) -> FileEvidence:
    """Return the evidence in a file."""
    return FileEvidence(sorted(_all_evidence(names), key=lambda piece: piece.line))


def _all_evidence(names: Names) -> Iterator[Evidence]:
    calls_keras = shows_two = False
    known: set[tuple[Kind, Scope]] = set()
    for name, node, where in _called_names(names):
        dotted = canonical_name(name)
        calls_keras = calls_keras or dotted.startswith("tensorflow.keras.")
        for kind in _evidence_kinds(name):
            if (kind, where.scope) not in known and _is_evidence(names, kind, name, node):
                known.add((kind, where.scope))
                shows_two = shows_two or kind in (Kind.EAGER, Kind.ONLY_TWO)
                if kind == Kind.ONE and is_tf1_name(name) and _is_in_own_graph(names, node):
                    kind = Kind.WEAK
                short = kind == Kind.ADDED or dotted in _REPLACING or dotted in _ADDED
                yield _make_evidence(names, last_part(dotted) if short else name, node, kind)
    for node in _mentions_of_contrib(names):
        yield _make_evidence(names, "tensorflow.contrib", node, Kind.ONLY_ONE)
    if calls_keras:
        yield from _evidence_of_old_arguments(names)
    yield from _evidence_of_eager_execution(names, shows_two)
    for node in _training_calls(names, calls_keras):
        yield _make_evidence(names, last_name(node.func), node, Kind.TRAINS)


@functools.lru_cache(maxsize=65536)
def _evidence_kinds(name: str) -> tuple[Kind, ...]:
    """Return the kinds of evidence that a name as spelled may be."""
    return tuple(_find_evidence_kinds(name, canonical_name(name)))


def _find_evidence_kinds(name: str, dotted: str) -> Iterator[Kind]:
    if dotted == _TAPE:
        yield Kind.TRAINS
    elif dotted == _GRADIENTS:
        yield Kind.GRADIENTS
    elif dotted in OPEN:
        yield Kind.OPENS
    elif dotted in ENABLING:
        yield Kind.ENABLES
    if dotted in _REPLACING or dotted in _ADDED and not name.startswith("npu_shim."):  # of the vendor's package
        yield Kind.ONE
    elif dotted in _ADDED:
        yield Kind.ADDED
    elif name.startswith(_BACKPORTS):
        yield Kind.ONLY_TWO
    if not name.startswith(("tensorflow.", "tensorflow_estimator.")) and not is_standalone_keras(name):
        return
    if dotted in _SESSIONS and is_tf1_name(name):
        yield Kind.SESSION
    elif _is_name_of_tf1(name, dotted):
        if is_tf1_name(name) and dotted.startswith(_ALSO_EAGER):
            yield Kind.WEAK
        else:
            yield Kind.ONLY_ONE if _is_removed_in_tf2(name) else Kind.ONE
    elif dotted in _EAGER:
        yield Kind.EAGER
    elif _is_name_of_tf2(name, dotted):
        yield Kind.ONLY_TWO


def _is_evidence(names: Names, kind: Kind, name: str, node: ast.AST) -> bool:
    """Return True unless a name runs in one version only, or is no evidence because of its use."""
    dotted = canonical_name(name)
    if kind in (Kind.TRAINS, Kind.GRADIENTS, Kind.OPENS, Kind.ENABLES, Kind.EAGER) or name.startswith(_BACKPORTS):
        return True
    if dotted.startswith("tensorflow.disable_"):
        return True
    if _is_in_version_branch(names, node):
        return False
    if kind == Kind.SESSION:
        return use_of_session(names, node) == Use.PROGRAM
    if kind == Kind.ADDED and last_part(dotted) == "npu_config_proto":
        return use_of_session(names, _enclosing_config(names, node)) == Use.PROGRAM
    return True


def _called_names(names: Names) -> Iterator[tuple[str, ast.AST, Where]]:
    """Yield the dotted names that a file calls or decorates with."""
    for call in names.calls:
        spelled = names.spelled_name(call.node.func, call.where)
        if spelled == "functools.partial" and call.node.args:
            spelled = names.spelled_name(call.node.args[0], call.where)
        if spelled:
            yield spelled, call.node, call.where
    for function in names.functions:
        for decorator in getattr(function.node, "decorator_list", ()):
            spelled = names.spelled_name(decorator, function.where)
            if spelled:
                yield spelled, decorator, function.where
    for node, where in names.classes:
        for base in node.bases:
            spelled = names.spelled_name(base, where)
            if spelled:
                yield spelled, base, where


def _mentions_of_contrib(names: Names) -> Iterator[ast.AST]:
    """Yield the imports and the uses of ``tensorflow.contrib`` that are no calls of its names."""
    for bindings in names.module.bindings.values():
        for binding in bindings:
            if binding.kind == "import" and binding.target.startswith(_CONTRIB) and binding.node is not None:
                if canonical_name(binding.target) not in _DROPOUTS and not _is_in_version_branch(names, binding.node):
                    yield binding.node
    for mention in names.mentions("contrib"):
        whole = mention
        while isinstance(names.parents.get(whole), ast.Attribute):
            whole = names.parents[whole]
        spelled = names.spelled_name(mention, names.place(mention)) or ""
        if (
            spelled == "tensorflow.contrib"
            and canonical_name(names.spelled_name(whole, names.place(whole)) or "") not in _DROPOUTS
        ):
            if not _is_in_version_branch(names, mention):
                yield mention


def _enclosing_config(names: Names, node: ast.AST) -> ast.AST:
    """Return the call that takes a configuration, or the configuration."""
    parent = names.parents.get(node, node)
    return names.parents.get(parent, parent) if isinstance(parent, ast.keyword) else parent


def _is_name_of_tf1(name: str, dotted: str) -> bool:
    if is_standalone_keras(name):
        return dotted.startswith(_KERAS_PACKAGE) or dotted in _KERAS
    if name.startswith("tensorflow.python."):
        return False  # private modules, which both versions have
    if dotted in _DROPOUTS:
        return False  # it is replaced, and a second run would find another version
    if dotted.startswith(_ENABLES):
        return (
            not is_tf1_name(name) and not is_known_tf2_spelling(name) and fate_of_v1_name(name) in (ONLY_IN_V1, NOWHERE)
        )
    if dotted in _BOTH:
        return False
    if dotted.startswith(_GRAPHS) or dotted in _KERAS:
        return True
    if dotted in _OF_EARLY_2:
        return False
    if dotted.startswith("tensorflow.keras."):
        return False  # Keras moves names from version to version
    return _is_removed_in_tf2(name)


def _is_removed_in_tf2(name: str) -> bool:
    """Return True if TensorFlow 2 does not have a name as it is spelled."""
    return not is_tf1_name(name) and fate_of_v1_name(name) in (ONLY_IN_V1, NOWHERE, OF_CONTRIB)


def _evidence_of_old_arguments(names: Names) -> Iterator[Evidence]:
    """Yield the evidence of arguments that only Keras for TensorFlow 1 takes."""
    for call in names.calls:
        for keyword in call.node.keywords:
            if keyword.arg in _KERAS_ARGUMENTS:
                yield _make_evidence(names, f"{keyword.arg}=", call.node, Kind.ONE)


def _is_in_version_branch(names: Names, node: ast.AST) -> bool:
    """Return True if code runs in one version only: it asks for the version, or catches what fails in the other."""
    child = node
    for parent in names.ancestors(node):
        if isinstance(parent, ast.Try) and child not in parent.finalbody:
            caught = {last_name(part) for handler in parent.handlers for part in _exception_types(handler)}
            if caught & _MISSING:
                return True
        if isinstance(parent, (ast.If, ast.IfExp)) and any(
            isinstance(part, ast.Attribute) and part.attr in _VERSIONS for part in ast.walk(parent.test)
        ):
            return True
        child = parent
    return False


def _is_in_own_graph(names: Names, node: ast.AST) -> bool:
    """Return True for code in ``with tf.Graph().as_default():``, as eager programs read frozen graphs."""
    return any(
        isinstance(parent, ast.With)
        and any(
            last_name(getattr(item.context_expr, "func", item.context_expr)) == "as_default" for item in parent.items
        )
        for parent in names.ancestors(node)
    )


def _exception_types(handler: ast.ExceptHandler) -> list[ast.expr]:
    return handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type] if handler.type else []


def _is_name_of_tf2(name: str, dotted: str) -> bool:
    if dotted.endswith(".gelu") or dotted.startswith("tensorflow.distribute."):
        return False  # the tool replaces these, so a second run would find another version
    is_new = (
        fate_of_v1_name(dotted if is_standalone_keras(name) else name) == NEW
        or is_known_tf2_spelling(name)
        or has_backport(dotted)
    )
    return is_new and not is_tf1_name(name)


def _evidence_of_eager_execution(names: Names, is_known_tf2: bool) -> Iterator[Evidence]:
    """Yield the evidence of values of tensors, ``loss.numpy()``, and of a loop over a dataset.

    Args:
        names: of the file.
        is_known_tf2: True if names show version 2. Then the types of what loops run over are not inferred.
    """
    of_tensorflow = any(
        binding.target.partition(".")[0] == "tensorflow"
        for bindings in names.module.bindings.values()
        for binding in bindings
    ) and not _imports_package(names, "torch")
    for call in names.calls:
        function = call.node.func
        if of_tensorflow and isinstance(function, ast.Attribute) and function.attr == "numpy" and not call.node.args:
            is_known_tf2 = True
            yield _make_evidence(names, ".numpy()", call.node, Kind.VALUE)
    for statement, where in names.places.items():
        if is_known_tf2 or not isinstance(statement, ast.For) or _is_sequence(names, statement.iter, where):
            continue
        if names.types.type_of(statement.iter, where) == Type.DATASET:
            is_known_tf2 = True
            yield _make_evidence(names, "a loop over a dataset", statement, Kind.VALUE)


def _is_sequence(names: Names, node: ast.expr, where: Where) -> bool:
    """Return True for a literal and a call of ``range`` and others, which takes less time than a type."""
    if isinstance(node, (ast.List, ast.Set, ast.Tuple)):
        return True
    called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return called in _SEQUENCES and not names.bindings_of_name(called, where)


def _training_calls(names: Names, calls_keras: bool) -> Iterator[ast.Call]:
    """Yield the calls that train a Keras model, or an object that is compiled or trained as only Keras does.

    ``minimize`` of a Keras optimizer trains, too. Of each function the first call is enough.
    """
    may_be_keras = calls_keras or _imports_package(names, "tensorflow") and not _imports_package(names, "torch")
    known: set[Scope] = set()
    for call in names.calls:
        if isinstance(call.node.func, ast.Attribute) and call.where.scope not in known:
            if _trains_keras(names, call, call.node.func, may_be_keras):
                known.add(call.where.scope)
                yield call.node


def _trains_keras(names: Names, call: Call, function: ast.Attribute, may_be_keras: bool) -> bool:
    model = function.value
    if function.attr in TRAINING_METHODS:
        kind = names.types.type_of(model, call.where)
        return (
            kind == Type.MODEL
            or trains_as_keras(names, call)
            or kind is None
            and may_be_keras
            and is_compiled(names, model, call.where)
        )
    return function.attr == "minimize" and names.types.type_of(model, call.where) == Type.KERAS_OPTIMIZER


def trains_as_keras(names: Names, call: Call) -> bool:
    """Return True if a call trains an object of unknown type by a method or with an argument that only Keras has."""
    function = call.node.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr in TRAINING_METHODS
        and (function.attr != "fit" or not _OF_FIT.isdisjoint({keyword.arg for keyword in call.node.keywords}))
        and names.types.type_of(function.value, call.where) is None
        and not _imports_package(names, "torch")
    )


def _imports_package(names: Names, package: str) -> bool:
    return any(
        binding.target.partition(".")[0] == package
        for bindings in names.module.bindings.values()
        for binding in bindings
    )


def _make_evidence(names: Names, name: str, node: ast.AST, kind: Kind) -> Evidence:
    rest = name_below_tensorflow(name) if name.startswith("tensorflow.") else ""
    return Evidence(f"tf.{rest}" if rest else name, names.path, getattr(node, "lineno", 0), kind)
