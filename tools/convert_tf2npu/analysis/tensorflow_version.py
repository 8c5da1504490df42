"""Find out which TensorFlow a program speaks: version 1, version 2, both, or one that its source does not show.

The program of a file is the file with all files of the project that it imports, and, if these show nothing, the files
that import it. ``--tf`` overrides the answer, and with ``--compat-v1`` it is version 1.
"""

from __future__ import annotations

import ast
import enum
import os
import re
from typing import Iterable, Iterator, NamedTuple

from ..project.context import Context
from ..semantics.module_index import ModuleIndex, Names
from ..semantics.tf_types import Type
from ..tf_api.canonical_names import canonical, is_only_version2, is_version1
from ..tf_api.v1_fate import NEW, NOWHERE, OF_CONTRIB, ONLY_IN_V1, became, rest_of
from .near_frameworks import near_frameworks


class Version(enum.Enum):
    """The answer."""

    ONE, TWO, BOTH, UNKNOWN = "TensorFlow 1", "TensorFlow 2", "TensorFlow 1 and 2", "TensorFlow 1 or 2"


class Evidence(NamedTuple):
    """A name in a file that shows the version, as scripts write it."""

    name: str
    path: str
    line: int


class FileEvidence(NamedTuple):
    """The evidence in a file.

    Attributes:
        one: of version 1, in which the program builds graphs.
        session: a session of compat.v1. Programs of version 2 make one to limit the memory of GPUs.
        two: of version 2, eager.
        trains: the file trains a Keras model or computes gradients eagerly.
        opens: the file opens the NPU device.
    """

    one: Evidence | None
    session: Evidence | None
    two: Evidence | None
    trains: bool
    opens: bool


class Verdict(NamedTuple):
    """The version of a program.

    Attributes:
        version: the version.
        evidence: what shows it; None if nothing does.
        trains: the file, or one that it imports, trains.
        is_trained: one of the program trains.
        opens: one of the program opens the NPU device.
    """

    version: Version
    evidence: Evidence | None
    trains: bool
    is_trained: bool
    opens: bool

    @property
    def is_two(self) -> bool:
        """True if the program runs on TensorFlow 2: it shows this, or nothing but Keras that trains."""
        return self.version == Version.TWO or self.version == Version.UNKNOWN and self.is_trained


TRAINING = frozenset({"fit", "fit_generator", "train_on_batch"})
_TAPE = "tensorflow.GradientTape"
_EAGER = frozenset({_TAPE, "tensorflow.function", "tensorflow.config.run_functions_eagerly"})
_OPEN = frozenset({"npu_shim.npu_device.open", "npu_shim.npu_device.npu_device.open"})
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
_SESSIONS = frozenset({"tensorflow.Session", "tensorflow.InteractiveSession", "tensorflow.keras.backend.set_session"})
_KERAS = frozenset(
    "tensorflow.keras." + name for name in ("backend.get_session", "layers.CuDNNGRU", "layers.CuDNNLSTM")
)
_ENABLES = ("tensorflow.enable_", "tensorflow.logging", "tensorflow.ConfigProto", "tensorflow.GPUOptions")


def is_two(context: Context) -> bool:
    """Return True if a file belongs to a program that runs on TensorFlow 2."""
    return verdict(context).is_two


def verdict(context: Context) -> Verdict:
    """Return the version of the program that a file belongs to."""
    return context.names.once(_verdict, context.tf, context.compat_v1)


def _verdict(names: Names, tf: str, compat_v1: bool) -> Verdict:
    own = names.once(evidence_of)
    program = _Program(names)
    version, evidence = _version([own]) if _is_clear(own) else (Version.UNKNOWN, None)
    if version != Version.ONE or program.may_be_eager():
        started = _version(program.decisive(program.started, clear=True))
        if started[0] in (Version.ONE, Version.TWO):
            version, evidence = started
        elif not _is_clear(own):
            version, evidence = _version([own, *program.decisive(program.imported)])
        if version == Version.UNKNOWN:
            version, evidence = _version(program.decisive(program.importing))
    if tf:
        version = Version.ONE if tf == "1" else Version.TWO
    elif compat_v1:
        version = Version.ONE  # the user says so, and lifting removes evidence of it
    if version in (Version.ONE, Version.BOTH):
        return Verdict(version, evidence, False, False, False)
    trains = own.trains or program.first("trains", program.imported) is not None
    opens = own.opens or program.first("opens", program.imported | program.importing) is not None
    is_trained = trains or program.first("trains", program.importing) is not None
    return Verdict(version, evidence, trains, is_trained, opens)


class _Program:
    """The other files of the program of a file.

    Few of them are analysed: those near TensorFlow with a word that may be evidence.

    ``imported`` are those that the file imports, ``importing`` those that import it, directly or not, and ``started``
    the scripts among them, tests left out.
    """

    def __init__(self, names: Names) -> None:
        path, project = names.path, names.project
        self.imported: frozenset[str] = frozenset()
        self.importing: frozenset[str] = frozenset()
        self._project = project if project and path in project.paths else None
        if self._project:
            self.imported = self._project.reached(path) - {path}
            self.importing = self._project.bringing({path}) - {path}

    @property
    def started(self) -> list[str]:
        assert self._project or not self.importing
        started = [path for path in self.importing if self._project and not self._project.importers(path)]
        return [path for path in started if "test" not in re.split(r"[\W_]+", os.path.basename(path))]

    def may_be_eager(self) -> bool:
        """Return True if a file that imports this one has a word of eager code."""
        return any(self._has(path, "two") for path in self.importing)

    def decisive(self, paths: Iterable[str], clear: bool = False) -> list[FileEvidence]:
        """Return the first evidence of version 2 and the first of version 1 in some files.

        Args:
            paths: the files.
            clear: True if a file with both does not count.
        """
        found = [self.first(kind, paths, clear) for kind in ("two", "one")]
        return [each for each in found if each is not None]

    def first(self, kind: str, paths: Iterable[str], clear: bool = False) -> FileEvidence | None:
        """Return the evidence of the first of some files that has one of a kind."""
        for path in sorted(paths):
            found = self._project.once(_of_file, path) if self._project and self._has(path, kind) else None
            if found is not None and getattr(found, kind) and (not clear or _is_clear(found)):
                return found
        return None

    def _has(self, path: str, kind: str) -> bool:
        project = self._project
        return project is not None and kind in project.once(_kinds, path) and path in project.once(near_frameworks)


# What may be evidence in the bytes of a file.
_WORDS = {
    "two": (b"GradientTape", b".function", b".numpy()", b"functions_eagerly", b"set_seed", b"set_random_seed"),
    "one": (b"placeholder", b"Session", b"layers.", b"contrib", b"get_variable", b"stimator", b"disable_", b"tf.app"),
    "trains": (b"GradientTape", b".fit(", b"fit_generator", b"train_on_batch"),
    "opens": (b".open(",),
}


def _kinds(project: ModuleIndex, path: str) -> frozenset[str]:
    raw = project.raw(path)
    return frozenset(kind for kind, words in _WORDS.items() if any(word in raw for word in words))


def _is_clear(own: FileEvidence) -> bool:
    return (own.one is None) != (own.two is None)


def _version(found: list[FileEvidence]) -> tuple[Version, Evidence | None]:
    one = next((each.one for each in found if each.one), None)
    two = next((each.two for each in found if each.two), None)
    if one and two:
        return Version.BOTH, two
    if two:
        return Version.TWO, two
    one = one or next((each.session for each in found if each.session), None)
    return (Version.ONE, one) if one else (Version.UNKNOWN, None)


def _of_file(project: ModuleIndex, path: str) -> FileEvidence | None:
    module = project.module(path) if project.concerns(project.raw(path), path) else None
    return module.names.once(evidence_of) if module else None


def evidence_of(names: Names) -> FileEvidence:
    """Return the evidence in a file."""
    one: Evidence | None = None
    session: Evidence | None = None
    eager: Evidence | None = None
    two: Evidence | None = None
    trains = opens = False
    calls_keras = False
    for name, node in _names(names):
        dotted = canonical(name)
        trains = trains or dotted == _TAPE
        opens = opens or dotted in _OPEN
        calls_keras = calls_keras or dotted.startswith("tensorflow.keras.")
        if not name.startswith(("tensorflow.", "tensorflow_estimator.")):
            continue
        if dotted in _SESSIONS and is_version1(name):
            session = session or _evidence(names, name, node)
        elif _is_one(name, dotted, node):
            one = one or _evidence(names, name, node)
        elif dotted in _EAGER:
            eager = eager or _evidence(names, name, node)
        elif _is_two(name, dotted):
            two = two or _evidence(names, name, node)
    two = eager or two or _reads_values(names)
    return FileEvidence(one, session, two, trains or _fits(names, calls_keras), opens)


def _names(names: Names) -> Iterator[tuple[str, ast.AST]]:
    """Yield the dotted names that a file calls or decorates with."""
    for call in names.calls:
        spelled = names.spelled(call.node.func, call.where)
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


def _is_one(name: str, dotted: str, node: ast.AST) -> bool:
    if dotted == "tensorflow.nn.dropout":
        return isinstance(node, ast.Call) and any(keyword.arg == "keep_prob" for keyword in node.keywords)
    if dotted.startswith(_ENABLES):
        return not is_version1(name) and became(name) in (ONLY_IN_V1, NOWHERE)
    if dotted.startswith(_GRAPHS) or dotted in _KERAS:
        return True
    if dotted.startswith("tensorflow.keras."):
        return False  # Keras moves names from version to version
    return not is_version1(name) and became(name) in (ONLY_IN_V1, NOWHERE, OF_CONTRIB)


def _is_two(name: str, dotted: str) -> bool:
    if dotted.endswith(".gelu") or dotted.startswith("tensorflow.distribute."):
        return False  # the tool replaces these, so a second run would find another version
    return not is_version1(name) and (became(name) == NEW or is_only_version2(name))


def _reads_values(names: Names) -> Evidence | None:
    """Return the evidence of a loop over a dataset, or of the value of a tensor: ``loss.numpy()``."""
    of_tensorflow = any(
        binding.target.partition(".")[0] == "tensorflow"
        for bindings in names.module.bindings.values()
        for binding in bindings
    ) and not any(binding.target == "torch" for bindings in names.module.bindings.values() for binding in bindings)
    for call in names.calls:
        function = call.node.func
        if of_tensorflow and isinstance(function, ast.Attribute) and function.attr == "numpy" and not call.node.args:
            return _evidence(names, ".numpy()", call.node)
    for statement, where in names.places.items():
        if isinstance(statement, ast.For) and names.types.of(statement.iter, where) == Type.DATASET:
            return _evidence(names, "a loop over a dataset", statement)
    return None


def _fits(names: Names, calls_keras: bool) -> bool:
    """Return True if a file trains a Keras model, or, if it calls Keras, an object that it compiles as one."""
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
        if isinstance(function, ast.Attribute) and function.attr in TRAINING:
            model = function.value
            if calls_keras and isinstance(model, ast.Name) and model.id in compiled:
                return True
            if names.types.of(model, call.where) == Type.MODEL:
                return True
    return False


def _evidence(names: Names, name: str, node: ast.AST) -> Evidence:
    rest = rest_of(name) if name.startswith("tensorflow.") else ""
    return Evidence(f"tf.{rest}" if rest else name, names.path, getattr(node, "lineno", 0))
