"""Find out which TensorFlow a program speaks: version 1, version 2, both, or one that its source does not show.

The program of a file is the file with all files of the project that it imports, and, if these show nothing, the files
that import it. ``--tf`` overrides the answer, and with ``--compat-v1`` it is version 1.
"""

from __future__ import annotations

import ast
from typing import Iterable, NamedTuple, Sequence

from ..project.context import Context
from ..semantics.module_index import ModuleIndex, Names
from .device_placement import only_serves_tests
from .entry_points import is_program, is_started, programs_importing
from .evidence_words import evidence_kinds_in_file, evidence_kinds_of_bytes, files_with_evidence_words
from .idle_sessions import Use, use_of_session
from .keras_backends import has_other_backend
from .near_frameworks import near_frameworks
from .program_version import (
    Judgement,
    Version,
    first_evidence,
    judgement_of,
    judgement_of_script,
    reach_of,
    script_trains,
)
from .tensorflow_evidence import Evidence, FileEvidence, evidence_of

__all__ = [
    "Version",
    "Verdict",
    "is_eager_file",
    "is_idle_session",
    "is_graph_program",
    "is_tf2_program",
    "may_be_tf2",
    "may_train",
    "kind_of_file_on_cpu",
    "is_imported_by_graph_program",
    "evidence_of_tf2",
    "version_verdict",
]


class Verdict(NamedTuple):
    """The version of a program.

    Attributes:
        version: the version.
        one: what shows version 1; None if nothing does.
        two: what shows version 2.
        trains: the file, or one that it imports, trains.
        is_trained: one of the program trains.
        opens: one of the program opens the NPU device.
    """

    version: Version
    one: Evidence | None
    two: Evidence | None
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


def is_tf2_program(context: Context) -> bool:
    """Return True if a file belongs to a program that runs on TensorFlow 2."""
    if not context.tf and not context.compat_v1 and context.names.once(_is_module_without_tf2):
        if context.once(is_imported_by_graph_program):
            return False  # a verdict judges all scripts that import it, which takes longer
    return version_verdict(context).is_two


def _is_module_without_tf2(names: Names) -> bool:
    """Return True for a module of scripts that shows version 1 only, or no version 2 with what it imports."""
    project, path = names.project, names.path
    if not names.is_in_project or _is_program_or_unused_library(project, path):
        return False
    own = names.once(evidence_of)
    is_one = own.is_clear and own.one is not None
    return is_one or first_evidence(project, "two", project.with_imports(path)) is None


def evidence_of_tf2(context: Context) -> Evidence | None:
    """Return what shows version 2 if nothing but ``--compat-v1`` makes a program one of version 1."""
    unlifted = context.names.once(_version_verdict, context.tf, False)
    return unlifted.two if unlifted.version == Version.TWO else None


def is_graph_program(context: Context) -> bool:
    """Return True if a file belongs to a program that builds graphs, with both versions or with TensorFlow 1 only."""
    return version_verdict(context).version in (Version.ONE, Version.BOTH)


def is_imported_by_graph_program(context: Context) -> bool:
    """Return True if a program of TensorFlow 1 imports a file, whatever the file itself shows."""
    project, path = context.names.project, context.names.path
    return any(
        project.once(judgement_of_script, script).version == Version.ONE
        for script in project.once(programs_importing, path)
    )


def is_eager_file(context: Context) -> bool:
    """Return True if a file has a tape or a tf.function, or builds no graph and one that imports it has them.

    A module that programs of both versions import counts as one of version 1.
    """
    if context.tf == "1" or context.compat_v1 or not may_be_tf2(context):
        return False
    own = context.names.once(evidence_of)
    if own.eager is not None or own.one is not None:
        return own.eager is not None
    if context.tf == "2":
        return True
    return context.names.once(_has_eager_user) and version_verdict(context).version == Version.TWO


def _has_eager_user(names: Names) -> bool:
    return first_evidence(names.project, "eager", names.importing_files) is not None


def is_idle_session(context: Context, node: ast.AST) -> bool:
    """Return True if a call makes a session of tf.compat.v1 that nothing runs, as it is in eager code."""
    use = use_of_session(context.names, node)
    if use == Use.PROGRAM:
        return False
    judged_file = version_verdict(context)
    is_set_up = judged_file.is_trained or bool(getattr(node, "keywords", ()))  # for the memory of GPUs
    return judged_file.version == Version.TWO or (
        judged_file.version == Version.UNKNOWN and use == Use.NOTHING and is_set_up
    )


def kind_of_file_on_cpu(context: Context) -> str:
    """Return "script" if a file belongs to a program of TensorFlow 2 in which nothing opens the NPU device.

    A script that trains is not among them, unless it chooses another backend of Keras: the tool opens the device there.
    Tests are not either.

    Returns:
        "script"; "module" for a file of TensorFlow 2 that no script of the project imports; "" for others.
    """
    if not may_be_tf2(context) or only_serves_tests(context) or not is_tf2_program(context):
        return ""
    judged_file = version_verdict(context)
    if judged_file.opens:
        return ""
    started = is_started(context)
    if judged_file.trains and started:
        return "script" if has_other_backend(context.names) else ""
    names = context.names
    if judged_file.is_trained and names.once(_is_started_by_others):
        return ""
    return "script" if started or names.once(_is_imported_by_programs) else "module"


def may_be_tf2(context: Context) -> bool:
    """Return True if a word of eager code or training is in a file or in one that imports it.

    This takes less time than a verdict.
    """
    return (
        context.tf == "2"
        or context.names.once(_may_be_tf2_itself, context.source.raw)
        or context.names.once(_is_imported_by_tf2)
    )


def _may_be_tf2_itself(names: Names, raw: bytes) -> bool:
    project, path = names.project, names.path
    is_known = names.is_in_project and project.raw(path) == raw  # no notebook
    kinds = project.once(evidence_kinds_in_file, path) if is_known else evidence_kinds_of_bytes(raw)
    return not kinds.isdisjoint(("two", "trains"))


def _is_imported_by_tf2(names: Names) -> bool:
    importers = names.project.once(_files_with_words_of_tf2)
    return bool(importers) and not importers.isdisjoint(names.project.with_importers({names.path}))


def _files_with_words_of_tf2(project: ModuleIndex) -> frozenset[str]:
    """Return the files near TensorFlow with a word of eager code or training."""
    return project.once(files_with_evidence_words, "eager") | project.once(files_with_evidence_words, "trains")


def version_verdict(context: Context) -> Verdict:
    """Return the version of the program that a file belongs to."""
    return context.names.once(_version_verdict, context.tf, context.compat_v1)


def _version_verdict(names: Names, tf: str, compat_v1: bool) -> Verdict:
    if tf == "1" or compat_v1 and not tf:  # the user says so, and lifting removes evidence of it
        return Verdict(Version.ONE, None, None, False, False, False)
    own = names.once(evidence_of)
    project, path = names.project, names.path
    judgement = _version_of_project_file(project, path, own) if names.is_in_project else judgement_of([own])
    if judgement.version == Version.UNKNOWN and own.added:
        judgement = judgement._replace(version=Version.ONE, one=own.added)
    if tf:
        judgement = judgement._replace(version=Version.TWO)
    if judgement.version == Version.ONE:
        return Verdict(judgement.version, judgement.one, judgement.two, False, False, False)
    if not names.is_in_project:
        return Verdict(*judgement, own.trains, own.trains, own.opens)
    return Verdict(*judgement, *_file_and_program_train(project, path, own), _opens_device(project, path))


def may_train(context: Context) -> bool:
    """Return True if a file, or one that it imports, trains with some version. This takes less time than a verdict."""
    return context.names.once(_may_train)


def _may_train(names: Names) -> bool:
    own = names.once(evidence_of)
    return _reaches_training(names.project, names.path, own) if names.is_in_project else own.trains


def _version_of_project_file(project: ModuleIndex, path: str, file_evidence: FileEvidence) -> Judgement:
    """Return the version of a file of a project."""
    scripts = project.once(programs_importing, path)
    judgement = Judgement(Version.UNKNOWN)
    if _is_program_or_unused_library(project, path):
        judgement = project.once(judgement_of_script, path)
    if judgement.version == Version.UNKNOWN and scripts:
        judgement = _version_of_module(file_evidence, [project.once(judgement_of_script, script) for script in scripts])
        alone = project.once(judgement_of_script, path) if judgement.version == Version.BOTH else judgement
        judgement = alone if alone.version in (Version.ONE, Version.TWO) else judgement
    if judgement.version == Version.UNKNOWN:
        importing = project.with_importers({path}) - {path}
        evidence = [first_evidence(project, kind, importing) for kind in ("two", "one")]
        judgement = judgement_of(file for file in evidence if file)
    return judgement if judgement.version != Version.UNKNOWN else _version_of_sharing_scripts(project, path)


def _file_and_program_train(project: ModuleIndex, path: str, file_evidence: FileEvidence) -> tuple[bool, bool]:
    """Return True if a file or one that it imports trains, and True if its program does."""
    scripts = project.once(programs_importing, path)
    trains = _reaches_training(project, path, file_evidence)
    is_trained = (
        trains
        and _is_program_or_unused_library(project, path)
        or any(project.once(script_trains, script) for script in scripts)
    )
    if not is_trained and not scripts:  # tests may train it
        is_trained = first_evidence(project, "trains", project.with_importers({path}) - {path}) is not None
    return trains, is_trained


def _reaches_training(project: ModuleIndex, path: str, file_evidence: FileEvidence) -> bool:
    """Return True if a file or one that it imports trains."""
    if _is_program_or_unused_library(project, path):
        return project.once(script_trains, path)
    return file_evidence.trains or first_evidence(project, "trains", project.with_imports(path) - {path}) is not None


def _opens_device(project: ModuleIndex, path: str) -> bool:
    """Return True if the program of a file opens the NPU device."""
    both = project.with_imports(path) | project.with_importers({path})
    return first_evidence(project, "opens", both) is not None


def _is_program_or_unused_library(project: ModuleIndex, path: str) -> bool:
    """Return True if a file is a program, or a library that no program imports."""
    return not project.once(programs_importing, path) or project.once(is_program, path)


def _version_of_module(file_evidence: FileEvidence | None, scripts: Sequence[Judgement]) -> Judgement:
    """Return the version of a module: that of its scripts; if they have both, the one that it shows itself, or both."""
    clear = [script for script in scripts if script.version in (Version.ONE, Version.TWO)]
    if len({script.version for script in clear}) == 1:
        return clear[0]
    shown = clear or [script for script in scripts if script.version == Version.BOTH]
    if file_evidence is not None and (file_evidence.is_clear or not shown):
        return judgement_of([file_evidence])
    one = next((script.one for script in shown if script.one), None)
    two = next((script.two for script in shown if script.two), None)
    return Judgement(Version.BOTH if shown else Version.UNKNOWN, one, two)


def _version_of_sharing_scripts(project: ModuleIndex, path: str) -> Judgement:
    """Return the version of the scripts that share a module with a file which shows none.

    It is version 1 if one of those that share training code with it has it. For a program that only predicts it is
    version 2 if all that show one have it; for one that trains a Keras model it makes no difference.
    """
    for script in sorted(_scripts_sharing(project, reach_of(project, path).trainers) - {path}):
        judgement = project.once(judgement_of_script, script)
        if judgement.version == Version.ONE:
            return judgement
    if project.once(script_trains, path):
        return Judgement(Version.UNKNOWN)
    modules = project.once(near_frameworks) & project.with_imports(path) - {path}
    shared = _scripts_sharing(project, modules) - {path}
    judgement = _version_of_module(None, [project.once(judgement_of_script, script) for script in sorted(shared)])
    return judgement if judgement.version == Version.TWO else Judgement(Version.UNKNOWN)


def _scripts_sharing(project: ModuleIndex, modules: Iterable[str]) -> frozenset[str]:
    return frozenset(script for module in modules for script in project.once(programs_importing, module))


def _is_started_by_others(names: Names) -> bool:
    """Return True if a script imports the file, directly or not."""
    return bool(names.project.once(programs_importing, names.path))


def _is_imported_by_programs(names: Names) -> bool:
    """Return True if a program that users start imports the file, directly or not. Each such file is analysed."""
    project, path = names.project, names.path
    return any(project.once(is_program, script) for script in project.once(programs_importing, path))
