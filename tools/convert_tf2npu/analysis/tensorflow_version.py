"""Find out which TensorFlow a program speaks: version 1, version 2, both, or one that its source does not show.

The program of a file is the file with all files of the project that it imports, and, if these show nothing, the files
that import it. ``--tf`` overrides the answer, and with ``--compat-v1`` it is version 1.
"""

from __future__ import annotations

import ast
import enum
from typing import Iterable, NamedTuple

from ..project.context import Context
from ..semantics.module_index import ModuleIndex, Names
from ..syntax.words import has_words
from .describing import describes
from .device_placement import serves_tests
from .entry_points import is_program, is_started, scripts_with
from .idle_sessions import Use, use_of
from .keras_backends import has_other_backend
from .near_frameworks import near_frameworks
from .tensorflow_evidence import Evidence, FileEvidence, evidence_of


class Version(enum.Enum):
    """The answer."""

    ONE, TWO, BOTH, UNKNOWN = "1", "2", "1 and 2", "1 or 2"


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

    @property
    def on_npu(self) -> bool:
        """True if the program runs on TensorFlow 2 with an open NPU device: it trains, or opens the device itself."""
        return self.is_two and (self.is_trained or self.opens)


def is_two(context: Context) -> bool:
    """Return True if a file belongs to a program that runs on TensorFlow 2."""
    return verdict(context).is_two


def is_of_graphs(context: Context) -> bool:
    """Return True if a file belongs to a program that builds graphs, with both versions or with TensorFlow 1 only."""
    return verdict(context).version in (Version.ONE, Version.BOTH)


def is_eager(context: Context) -> bool:
    """Return True if a file has a tape or a tf.function, or builds no graph and one that imports it has them.

    A module that programs of both versions import counts as one of version 1.
    """
    if context.tf == "1" or context.compat_v1 or not may_be_two(context):
        return False
    own = context.names.once(evidence_of)
    if own.eager is not None or own.one is not None:
        return own.eager is not None
    if context.tf == "2":
        return True
    return context.names.once(_has_eager_user) and verdict(context).version == Version.TWO


def _has_eager_user(names: Names) -> bool:
    program = _Program(names)
    return program.first("eager", program.importing) is not None


def is_idle(context: Context, node: ast.AST) -> bool:
    """Return True if a call makes a session of tf.compat.v1 that nothing runs, as it is in eager code."""
    use = use_of(context.names, node)
    if use == Use.PROGRAM:
        return False
    version = verdict(context).version
    return version == Version.TWO or version == Version.UNKNOWN and use == Use.NOTHING


def on_cpu(context: Context) -> str:
    """Return "script" if a file belongs to a program of TensorFlow 2 in which nothing opens the NPU device.

    A script that trains is not among them, unless it chooses another backend of Keras: the tool opens the device there.
    Tests are not either.

    Returns:
        "script"; "module" for a file of TensorFlow 2 that no script of the project imports; "" for others.
    """
    if not may_be_two(context):
        return ""
    found = verdict(context)
    if not found.is_two or found.opens or serves_tests(context):
        return ""
    started = is_started(context)
    if found.trains and started:
        return "script" if has_other_backend(context.names) else ""
    program = _Program(context.names)
    if found.is_trained and program.is_started:
        return ""
    return "script" if started or program.is_imported_by_programs else "module"


def may_be_two(context: Context) -> bool:
    """Return True if a word of eager code or training is in a file or in one that imports it.

    This takes less time than a verdict.
    """
    return (
        context.tf == "2"
        or context.names.once(_may_be_two_itself, context.source.raw)
        or context.names.once(_is_imported_by_two)
    )


def _may_be_two_itself(names: Names, raw: bytes) -> bool:
    project, path = names.project, names.path
    is_known = project is not None and path in project.paths and project.raw(path) == raw  # no notebook
    kinds = project.once(_kinds_in, path) if project and is_known else _kinds_of(raw)
    return not kinds.isdisjoint(("two", "trains"))


def _is_imported_by_two(names: Names) -> bool:
    project = names.project
    if project is None or names.path not in project.paths:
        return False
    found = project.once(_with_words_of_two)
    return bool(found) and not found.isdisjoint(project.bringing({names.path}))


def _with_words_of_two(project: ModuleIndex) -> frozenset[str]:
    """Return the files near TensorFlow with a word of eager code or training."""
    return project.once(_with_words, "eager") | project.once(_with_words, "trains")


def verdict(context: Context) -> Verdict:
    """Return the version of the program that a file belongs to."""
    return context.names.once(_verdict, context.tf, context.compat_v1)


def _verdict(names: Names, tf: str, compat_v1: bool) -> Verdict:
    own = names.once(evidence_of)
    program = _Program(names)
    version, evidence = _version([own]) if _is_clear(own) else (Version.UNKNOWN, None)
    if version != Version.ONE or program.may_be("two"):
        started = _version(program.decisive(program.started, clear=True))
        if started[0] in (Version.ONE, Version.TWO):
            version, evidence = started
        elif not _is_clear(own):
            version, evidence = _version([own, *program.decisive(program.imported)])
            if version == Version.BOTH and not (own.one or own.session) and program.trains_eagerly():
                version = Version.TWO  # a helper of version 1 in a library does not decide
        if version == Version.UNKNOWN:
            version, evidence = _version(program.decisive(program.importing))
        if version == Version.UNKNOWN:  # what its scripts import besides may decide for TensorFlow 1
            beside = _version(program.decisive(program.beside | program.beside_trainers))
            version, evidence = beside if beside[0] == Version.ONE else (version, evidence)
    if version == Version.UNKNOWN and own.added:
        version, evidence = Version.ONE, own.added
    if tf:
        version = Version.ONE if tf == "1" else Version.TWO
    elif compat_v1:
        version = Version.ONE  # the user says so, and lifting removes evidence of it
    if version == Version.ONE:
        return Verdict(version, evidence, False, False, False)
    trains = own.trains or program.first("trains", program.imported - program.starting) is not None
    opens = own.opens or program.first("opens", program.imported | program.importing) is not None
    is_trained = trains or any(program.first("trains", paths) for paths in (program.importing, program.beside))
    return Verdict(version, evidence, trains, is_trained, opens)


class _Program:
    """The other files of the program of a file.

    Few of them are analysed: those near TensorFlow with a word that may be evidence.

    ``imported`` are those that the file imports, ``importing`` those that import it, directly or not, ``started`` the
    scripts among them, tests left out, and ``beside`` what these scripts import. ``starting`` are the files of both
    kinds that are scripts: programs of their own, from which this file takes a name.
    """

    def __init__(self, names: Names) -> None:
        self._path = path = names.path
        project = names.project
        self.imported: frozenset[str] = frozenset()
        self.importing: frozenset[str] = frozenset()
        self._started: list[str] | None = None
        self._project = project if project and path in project.paths else None
        if self._project:
            self.imported = self._project.reached(path) - {path}
            self.importing = self._project.bringing({path}) - {path}

    @property
    def started(self) -> list[str]:
        if self._started is None:
            self._started = scripts_with(self._project, self._path) if self._project else []
        return self._started

    @property
    def beside(self) -> frozenset[str]:
        return frozenset().union(*(self._project.reached(path) for path in self.started if self._project))

    @property
    def beside_trainers(self) -> frozenset[str]:
        """The imports of the scripts that share a training module with this file: they have one version."""
        project = self._project
        trainers = sorted(self._among(self.imported, "trains"))
        scripts = {script for path in trainers if project for script in scripts_with(project, path)} - {self._path}
        return frozenset().union(*(project.reached(script) for script in scripts if project))

    @property
    def is_started(self) -> bool:
        """True if a script imports the file, directly or not."""
        project = self._project
        return bool(self.started) or any(
            project and project.once(_names_main, path) and not project.once(describes, path) for path in self.importing
        )

    @property
    def is_imported_by_programs(self) -> bool:
        """True if a program that users start imports the file, directly or not. Each such file is analysed."""
        project = self._project
        return project is not None and any(project.once(is_program, path) for path in self.started)

    @property
    def starting(self) -> frozenset[str]:
        both = self.imported & self.importing
        return frozenset(path for path in both if self._project and self._project.once(_names_main, path))

    def may_be(self, kind: str) -> bool:
        """Return True if a file that imports this one has a word of a kind."""
        return bool(self._among(self.importing, kind))

    def trains_eagerly(self) -> bool:
        """Return True if a file that this one imports trains in eager code and shows nothing of version 1."""
        found = self.first("eager", self.imported, clear=True)
        return found is not None and found.trains

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
        for path in sorted(self._among(paths, kind)):
            found = self._project.once(_of_file, path) if self._project else None
            if found is not None and getattr(found, kind) and (not clear or _is_clear(found)):
                return found
        return None

    def _among(self, paths: Iterable[str], kind: str) -> frozenset[str]:
        """Return those of some files that have a word of a kind."""
        return self._project.once(_with_words, kind).intersection(paths) if self._project else frozenset()


def _names_main(project: ModuleIndex, path: str) -> bool:
    return b"__main__" in project.raw(path)


# What may be evidence in the bytes of a file.
_WORDS: dict[str, tuple[bytes, ...]] = {
    "eager": (b"GradientTape", b".function", b"functions_eagerly"),
    "two": (b".numpy", b"set_seed", b"set_random_seed"),  # and those of eager code
    "one": (
        b"placeholder",
        b"Session",
        b"layers.",
        b"contrib",
        b"get_variable",
        b"stimator",
        b"disable_",
        b"tf.app",
        b"npu_init",
        b"_session",
        b"_backend",
        b"multi_gpu_model",
        b"nb_epoch",
        b"engine.topology",
        b"keras.legacy",
        b"objectives",
        b"border_mode",
        b"samples_per_epoch",
    ),
    "trains": (b"GradientTape", b"fit_generator", b"train_on_batch", b".fit", b".minimize("),
}


def _with_words(project: ModuleIndex, kind: str) -> frozenset[str]:
    """Return the files near TensorFlow with a word of a kind."""
    return frozenset(path for path in project.once(near_frameworks) if kind in project.once(_kinds_in, path))


def _kinds_in(project: ModuleIndex, path: str) -> frozenset[str]:
    return _kinds_of(project.raw(path))


def _kinds_of(raw: bytes) -> frozenset[str]:
    """Return the kinds of evidence of which a file has a word."""
    kinds = {kind for kind, words in _WORDS.items() if has_words(raw, words)}
    if "eager" in kinds:
        kinds.add("two")
        if "trains" not in kinds and has_words(raw, (b".gradients(",)):
            kinds.add("trains")
    if b"npu_shim" in raw and has_words(raw, (b".open",)):
        kinds.add("opens")
    return frozenset(kinds)


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
