"""Judge a script by the code that it reaches: the version of TensorFlow, and if it trains.

The evidence in a function that the script imports and never runs does not count.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Collection, Iterable, Iterator, NamedTuple

from ..project.module_cache import LRU
from ..semantics.module_index import ModuleIndex
from .entry_points import is_program
from .evidence_words import files_with_evidence_words
from .tensorflow_evidence import Evidence, FileEvidence, evidence_of

if TYPE_CHECKING:
    from .code_links import Part

_MOST_SCRIPTS = 16  # whose reach is kept


class Version(enum.Enum):
    """The version of TensorFlow that a program speaks."""

    ONE, TWO, BOTH, UNKNOWN = "1", "2", "1 and 2", "1 or 2"


class Judgement(NamedTuple):
    """The version of a program.

    Attributes:
        version: the version.
        one: what shows version 1; None if nothing does.
        two: what shows version 2.
    """

    version: Version
    one: Evidence | None = None
    two: Evidence | None = None


def judgement_of(evidence: Iterable[FileEvidence]) -> Judgement:
    """Return the version that the evidence of some files shows."""
    known = list(evidence)
    one = next((file.one for file in known if file.one), None)
    two = next((file.two for file in known if file.two), None)
    if one and two:
        return Judgement(Version.BOTH, one, two)
    if two:
        return Judgement(Version.TWO, None, two)
    one = one or next((file.session for file in known if file.session), None)
    return Judgement(Version.ONE, one) if one else Judgement(Version.UNKNOWN)


def judgement_of_script(project: ModuleIndex, path: str) -> Judgement:
    """Return the version of a script, or of a library that nothing imports, from its own code and what that reaches."""
    said = project.given_tf_version(path)
    if said:
        return Judgement(Version(said))
    reach = reach_of(project, path)
    return _judgement_of_reach(reach, reach.evidence(path))


def script_trains(project: ModuleIndex, path: str) -> bool:
    """Return True if a script, or code that it reaches, trains."""
    reach = reach_of(project, path)
    return (
        reach.evidence(path).trains
        or reach.first_reached_evidence("trains", reach.imported - reach.imported_starters) is not None
    )


def reach_of(project: ModuleIndex, path: str) -> Reach:
    """Return the evidence in the code that a script reaches."""
    known = project.once(_reach_cache)
    reach = known.get(path)
    if reach is None:
        reach = Reach(project, path)
        known.put(path, reach, 1)
    return reach


def _reach_cache(_: ModuleIndex) -> LRU[str, Reach]:
    return LRU(_MOST_SCRIPTS)


def _judgement_of_reach(reach: Reach, file_evidence: FileEvidence) -> Judgement:
    judgement = judgement_of([file_evidence])
    if file_evidence.is_clear:
        if judgement.version == Version.ONE or file_evidence.only_two:
            return judgement
        other = reach.first_reached_evidence("only_one", reach.imported)
        if other is None or other.only_one is None:
            return judgement
        enabled = file_evidence.enables or reach.first_reached_evidence("enables", reach.imported) is not None
        return Judgement(Version.ONE if enabled else Version.BOTH, other.only_one, judgement.two)
    imported = list(reach.first_evidence_of_each_version(reach.imported))
    judgement = judgement_of([file_evidence, *imported])
    if judgement.version == Version.BOTH:
        only_one = file_evidence.only_one or next((file.only_one for file in imported if file.only_one), None)
        if only_one:
            enabled = file_evidence.enables or reach.first_reached_evidence("enables", reach.imported) is not None
            if enabled and not any(file.only_two for file in [file_evidence, *imported]):
                return judgement._replace(version=Version.ONE, one=only_one)
        elif not (file_evidence.one or file_evidence.session) and reach.trains_eagerly():
            return judgement._replace(version=Version.TWO)  # a helper of version 1 in a library does not decide
    return judgement


class Reach:
    """The evidence in the code that a script reaches.

    Few files are analysed: those near TensorFlow with a word that may be evidence.

    Args:
        project: the files.
        script: the path of the script.

    Attributes:
        imported: the files that the script imports, directly or not.
        starting: the scripts among them that import this one: programs of their own, of which it takes a name.
    """

    def __init__(self, project: ModuleIndex, script: str) -> None:
        self._project = project
        self._script = script
        self.imported = project.with_imports(script) - {script}
        self._parts: frozenset[Part] | None = None
        self._is_searched = False

    @property
    def imported_starters(self) -> frozenset[str]:
        both = self.imported & self._project.with_importers({self._script})
        return frozenset(path for path in both if b"__main__" in self._project.raw(path))

    @property
    def trainers(self) -> Iterator[str]:
        """The imported files with code that trains and is reached."""
        for path in sorted(self._project.once(files_with_evidence_words, "trains") & self.imported):
            if self.evidence(path).trains:
                yield path

    @property
    def parts(self) -> frozenset[Part] | None:
        """The parts of files that are reached; None for all. They are searched when they are first asked for."""
        if not self._is_searched:
            from .reached_code import reached_code  # only here: programs of one file do not need it

            self._is_searched = True
            is_library = not self._project.once(is_program, self._script)
            self._parts = reached_code(self._project, self._script, is_library)
        return self._parts

    def evidence(self, path: str) -> FileEvidence:
        """Return the evidence in the code of a file that is reached."""
        evidence = self._project.once(evidence_of_file, path)
        if path == self._script or not evidence.pieces or self.parts is None:
            return evidence
        from .code_links import Part, outline_of_file  # only here, as above

        names, parts = self._project.once(outline_of_file, path), self.parts
        return FileEvidence(piece for piece in evidence.pieces if Part(path, names.unit_at(piece.line)) in parts)

    def first_reached_evidence(
        self, kind: str, paths: Collection[str], only_clear: bool = False
    ) -> FileEvidence | None:
        """Return the evidence of the first of some files that has one of a kind.

        Args:
            kind: an attribute of the evidence.
            paths: the files.
            only_clear: True if a file that shows both versions does not count.
        """
        for path in sorted(self._project.once(files_with_evidence_words, kind).intersection(paths)):
            # A part shows nothing else than the whole, but for weak evidence. To search the parts takes longer.
            whole = self._project.once(evidence_of_file, path)
            if getattr(whole, kind) or kind == "one" and whole.weak:
                evidence = self.evidence(path)
                if getattr(evidence, kind) and (not only_clear or evidence.is_clear):
                    return evidence
        return None

    def first_evidence_of_each_version(self, paths: Collection[str]) -> Iterator[FileEvidence]:
        """Yield the first evidence of version 2 and the first of version 1 in some files."""
        for kind in ("two", "one"):
            evidence = self.first_reached_evidence(kind, paths)
            if evidence is not None:
                yield evidence

    def trains_eagerly(self) -> bool:
        """Return True if a file that is imported trains in eager code and shows nothing of version 1."""
        evidence = self.first_reached_evidence("eager", self.imported, only_clear=True)
        return evidence is not None and evidence.trains


def first_evidence(project: ModuleIndex, kind: str, paths: Collection[str]) -> FileEvidence | None:
    """Return the evidence of the first of some files that has one of a kind, in any of their code."""
    for path in sorted(project.once(files_with_evidence_words, kind).intersection(paths)):
        evidence = project.once(evidence_of_file, path)
        if getattr(evidence, kind):
            return evidence
    return None


def evidence_of_file(project: ModuleIndex, path: str) -> FileEvidence:
    """Return the evidence in a file of a project, all of it."""
    module = project.module(path) if project.may_concern_rules(project.raw(path), path) else None
    return module.names.once(evidence_of) if module else FileEvidence(())
