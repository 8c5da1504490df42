"""Find what in a file shows the version of TensorFlow that it speaks."""

from __future__ import annotations

import ast
import functools
from typing import Iterator, NamedTuple

from ..semantics.model import Call, Where
from ..semantics.module_index import Names
from ..semantics.tf_types import Type
from ..syntax.expressions import last_name, last_part
from ..tf_api.canonical_names import canonical, is_only_version2, is_version1, of_keras
from ..tf_api.later_names import has_backport
from ..tf_api.v1_fate import NEW, NOWHERE, OF_CONTRIB, ONLY_IN_V1, became, rest_of
from .idle_sessions import SET_SESSION, Use, use_of

_TRAINING = frozenset({"fit", "fit_generator", "train_on_batch"})
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
_SESSIONS = frozenset({"tensorflow.Session", "tensorflow.InteractiveSession", SET_SESSION})
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


class Evidence(NamedTuple):
    """A name in a file that shows the version, as scripts write it."""

    name: str
    path: str
    line: int


class FileEvidence(NamedTuple):
    """The evidence in a file.

    Attributes:
        one: of version 1, in which the program builds graphs.
        session: a session of compat.v1 that the program may run.
        eager: of a tape or a tf.function.
        two: of version 2.
        trains: the file trains a Keras model, or computes gradients eagerly or in a tf.function.
        opens: the file opens the NPU device.
        added: a name that the tool adds to programs of version 1; it decides for this file if nothing else does.
    """

    one: Evidence | None
    session: Evidence | None
    eager: Evidence | None
    two: Evidence | None
    trains: bool
    opens: bool
    added: Evidence | None


def evidence_of(names: Names) -> FileEvidence:
    """Return the evidence in a file."""
    one: Evidence | None = None
    weak: Evidence | None = None  # of version 1, unless the file is eager
    session: Evidence | None = None
    eager: Evidence | None = None
    two: Evidence | None = None
    added: Evidence | None = None
    trains = opens = False
    calls_keras = has_gradients = False
    for name, node in _names(names):
        if not _shows(name):
            continue
        dotted = canonical(name)
        trains = trains or dotted == _TAPE
        has_gradients = has_gradients or dotted == _GRADIENTS
        opens = opens or dotted in OPEN
        calls_keras = calls_keras or dotted.startswith("tensorflow.keras.")
        if dotted in _REPLACING or dotted in _ADDED and not name.startswith("npu_shim."):  # of the vendor's package
            one = one or (None if _is_switched(names, node) else _evidence(names, last_part(dotted), node))
        elif added is None and dotted in _ADDED and not _is_switched(names, node):
            if last_part(dotted) != "npu_config_proto" or use_of(names, _around(names, node)) == Use.PROGRAM:
                added = _evidence(names, last_part(dotted), node)
        if name.startswith(_BACKPORTS):
            two = two or _evidence(names, name, node)
        if not name.startswith(("tensorflow.", "tensorflow_estimator.")) and not of_keras(name):
            continue
        if dotted in _SESSIONS and is_version1(name):
            if session is None and not _is_switched(names, node) and use_of(names, node) == Use.PROGRAM:
                session = _evidence(names, name, node)
        elif one is None and _is_one(name, dotted):
            decides = dotted.startswith("tensorflow.disable_") or not _is_switched(names, node)
            if decides and is_version1(name) and dotted.startswith(_ALSO_EAGER):
                weak = weak or _evidence(names, name, node)
            elif decides:
                one = _evidence(names, name, node)
        elif dotted in _EAGER:
            eager = eager or _evidence(names, name, node)
        elif two is None and _is_two(name, dotted) and not _is_switched(names, node):
            two = _evidence(names, name, node)
    one = one or (weak if eager is None else None) or (_old_argument(names) if calls_keras else None)
    two = eager or two or _reads_values(names)
    trains = trains or bool(eager and has_gradients) or _fits(names, calls_keras)
    return FileEvidence(one, session, eager, two, trains, opens, added)


def _names(names: Names) -> Iterator[tuple[str, ast.AST]]:
    """Yield the dotted names that a file calls or decorates with."""
    for call in names.calls:
        spelled = names.spelled(call.node.func, call.where)
        if spelled == "functools.partial" and call.node.args:
            spelled = names.spelled(call.node.args[0], call.where)
        if spelled:
            yield spelled, call.node
    for function in names.functions:
        for decorator in getattr(function.node, "decorator_list", ()):
            spelled = names.spelled(decorator, function.where)
            if spelled:
                yield spelled, decorator
    for node, where in names.classes:
        for base in node.bases:
            spelled = names.spelled(base, where)
            if spelled:
                yield spelled, base


def _around(names: Names, node: ast.AST) -> ast.AST:
    """Return the call that takes a configuration, or the configuration."""
    parent = names.parents.get(node, node)
    return names.parents.get(parent, parent) if isinstance(parent, ast.keyword) else parent


@functools.lru_cache(maxsize=65536)
def _shows(name: str) -> bool:
    """Return True if a name may be evidence: a fast test, because few of them are."""
    dotted = canonical(name)
    return (
        dotted in OPEN
        or dotted in _REPLACING
        or dotted in _ADDED
        or dotted in _SESSIONS
        or dotted in _EAGER
        or dotted == _GRADIENTS
        or dotted.startswith("tensorflow.keras.")
        or name.startswith(_BACKPORTS)
        or _is_one(name, dotted)
        or _is_two(name, dotted)
    )


def _is_one(name: str, dotted: str) -> bool:
    if of_keras(name):
        return dotted.startswith(_KERAS_PACKAGE) or dotted in _KERAS
    if name.startswith("tensorflow.python."):
        return False  # private modules, which both versions have
    if dotted in _DROPOUTS:
        return False  # it is replaced, and a second run would find another version
    if dotted.startswith(_ENABLES):
        return not is_version1(name) and became(name) in (ONLY_IN_V1, NOWHERE)
    if dotted.startswith(_GRAPHS) or dotted in _KERAS:
        return True
    if dotted in _OF_EARLY_2:
        return False
    if dotted.startswith("tensorflow.keras."):
        return False  # Keras moves names from version to version
    return not is_version1(name) and became(name) in (ONLY_IN_V1, NOWHERE, OF_CONTRIB)


def _old_argument(names: Names) -> Evidence | None:
    """Return the evidence of an argument that only Keras for TensorFlow 1 takes."""
    found = (
        (call.node, keyword.arg)
        for call in names.calls
        for keyword in call.node.keywords
        if keyword.arg in _KERAS_ARGUMENTS
    )
    return next((_evidence(names, f"{argument}=", node) for node, argument in found), None)


def _is_switched(names: Names, node: ast.AST) -> bool:
    """Return True if code runs in one version only: it asks for the version, or catches what fails in the other."""
    child = node
    for parent in names.ancestors(node):
        if isinstance(parent, ast.Try) and child not in parent.finalbody:
            caught = {last_name(part) for handler in parent.handlers for part in _types(handler)}
            if caught & _MISSING:
                return True
        if isinstance(parent, (ast.If, ast.IfExp)) and any(
            isinstance(part, ast.Attribute) and part.attr in _VERSIONS for part in ast.walk(parent.test)
        ):
            return True
        child = parent
    return False


def _types(handler: ast.ExceptHandler) -> list[ast.expr]:
    return handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type] if handler.type else []


def _is_two(name: str, dotted: str) -> bool:
    if dotted.endswith(".gelu") or dotted.startswith("tensorflow.distribute."):
        return False  # the tool replaces these, so a second run would find another version
    is_new = became(dotted if of_keras(name) else name) == NEW or is_only_version2(name) or has_backport(dotted)
    return is_new and not is_version1(name)


def _reads_values(names: Names) -> Evidence | None:
    """Return the evidence of a loop over a dataset, or of the value of a tensor: ``loss.numpy()``."""
    of_tensorflow = any(
        binding.target.partition(".")[0] == "tensorflow"
        for bindings in names.module.bindings.values()
        for binding in bindings
    ) and not _imports_torch(names)
    for call in names.calls:
        function = call.node.func
        if of_tensorflow and isinstance(function, ast.Attribute) and function.attr == "numpy" and not call.node.args:
            return _evidence(names, ".numpy()", call.node)
    for statement, where in names.places.items():
        if not isinstance(statement, ast.For) or _is_sequence(names, statement.iter, where):
            continue
        if names.types.of(statement.iter, where) == Type.DATASET:
            return _evidence(names, "a loop over a dataset", statement)
    return None


def _is_sequence(names: Names, node: ast.expr, where: Where) -> bool:
    """Return True for a literal and a call of ``range`` and others, which takes less time than a type."""
    if isinstance(node, (ast.List, ast.Set, ast.Tuple)):
        return True
    called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return called in _SEQUENCES and not names.lookup(called, where)


def _fits(names: Names, calls_keras: bool) -> bool:
    """Return True if a file trains a Keras model, or an object that it compiles or trains as only Keras does.

    ``minimize`` of a Keras optimizer trains, too.
    """
    compiled = {
        call.node.func.value.id
        for call in names.calls
        if isinstance(call.node.func, ast.Attribute)
        and isinstance(call.node.func.value, ast.Name)
        and call.node.func.attr == "compile"
        and {"loss", "optimizer"} & {keyword.arg for keyword in call.node.keywords}
    }
    for call in names.calls:
        function = call.node.func
        if isinstance(function, ast.Attribute) and function.attr in _TRAINING:
            model = function.value
            if calls_keras and isinstance(model, ast.Name) and model.id in compiled:
                return True
            if names.types.of(model, call.where) == Type.MODEL or trains_as_keras(names, call):
                return True
        elif isinstance(function, ast.Attribute) and function.attr == "minimize":
            if names.types.of(function.value, call.where) == Type.KERAS_OPTIMIZER:
                return True
    return False


def trains_as_keras(names: Names, call: Call) -> bool:
    """Return True if a call trains an object of unknown type by a method or with an argument that only Keras has."""
    function = call.node.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr in _TRAINING
        and (function.attr != "fit" or not _OF_FIT.isdisjoint({keyword.arg for keyword in call.node.keywords}))
        and names.types.of(function.value, call.where) is None
        and not _imports_torch(names)
    )


def _imports_torch(names: Names) -> bool:
    return any(binding.target == "torch" for bindings in names.module.bindings.values() for binding in bindings)


def _evidence(names: Names, name: str, node: ast.AST) -> Evidence:
    rest = rest_of(name) if name.startswith("tensorflow.") else ""
    return Evidence(f"tf.{rest}" if rest else name, names.path, getattr(node, "lineno", 0))
