"""One file through all rules: bytes in, bytes and diagnostics out.

Nothing is read or written here, so that the same function serves the command, tests, and the running
of unmodified scripts.
"""

from __future__ import annotations

import ast
from itertools import chain
from typing import Any, Iterable, NamedTuple, TypeVar

from ..files.extensions import NOTEBOOK
from ..project.project import Project
from ..rewrite.call_edits import broken_string, loses_comment
from ..rewrite.npu_imports import import_edits, taken
from ..rules.base import Change, Context, Finding, Result, Rule
from ..rules.compat_v1.lifted_names import as_lifted
from ..rules.compat_v1.lifting import CODE as LIFTING, MOVING, lift
from ..rules.registry import Registry
from ..semantics.model import Where
from ..syntax.expressions import last_name
from ..syntax.notebook import CellError, Notebook
from ..syntax.source import Edit, Source, SourceError, check_readable
from ..syntax.suppressions import ignored
from .api_usage import Said, counts, fates, places
from .results import (
    CHANGE,
    ERROR,
    FINDING,
    NO_MEMORY,
    TOOL_FAILS,
    UNTOUCHED,
    ApiCall,
    Calls,
    Diagnostic,
    FileResult,
    by_place,
    failed,
)
from .settings import Settings

__all__ = ["CHANGE", "ERROR", "FINDING", "Converter", "Diagnostic", "FileResult"]
# The tree of such a file would take gigabytes; people do not write so much, programs do.
MOST_BYTES = 2_000_000


def project_of(settings: Settings, paths: Iterable[str] = (), fixed: Iterable[str] = ()) -> Project:
    """The files of a run, read as the settings ask for.

    Args:
        settings: which rules act.
        paths: of the Python files.
        fixed: those among them that stay as they are.
    """
    lifts = settings.compat_v1 and settings.enabled(LIFTING)
    return Project(paths, fixed, lift if lifts else None)


class _Plan(NamedTuple):
    """What is to be done to a script, and said of it."""

    edits: tuple[Edit, ...]
    diagnostics: tuple[Diagnostic, ...]
    calls: Calls
    listed: tuple[ApiCall, ...]


class _Context(Context):
    """A context that looks each expression up once, however many rules ask what it is.

    ``words`` are the last words of the names that can be called in the script; without them these are all.
    """

    words: frozenset[str] | None = None

    def __init__(self, *_: object) -> None:
        self.known: dict[ast.AST, str | None] = {}
        self._called: dict[ast.Call, str] | None = None

    def resolve(self, node: ast.AST, where: Where) -> str | None:
        try:
            return self.known[node]
        except KeyError:
            found = self.known[node] = self.names.resolve(node, where)
            return found

    @property
    def called(self) -> dict[ast.Call, str]:
        if self._called is None:
            words = self.words
            found = (
                (call.node, self.resolve(call.node.func, call.where))
                for call in self.names.calls
                if words is None or last_name(call.node.func) in words
            )
            self._called = {node: name for node, name in found if name}
        return self._called


class Converter:
    """All rules with their settings.

    Args:
        settings: which rules act.
        project: the files of the run.
        list_calls: whether results list the calls of TensorFlow, for a report; their counts they always have.
    """

    def __init__(
        self, settings: Settings = Settings(), project: Project | None = None, list_calls: bool = False
    ) -> None:
        self.settings = settings
        self.list_calls = list_calls
        self.project = project or project_of(settings)
        self.registry = Registry(
            [r for r in Registry().rules if settings.enabled(r.code) and _has_all(settings, r.needs)]
        )
        # What becomes of replicas is followed through objects of every kind.
        self._on_objects = self.registry.on_objects() if settings.distributed != "tf_strategy" else None

    def convert(self, raw: bytes, path: str = "") -> FileResult:
        """Convert a script, or a notebook where the path ends so.

        Args:
            raw: the bytes of the file.
            path: where it stands, for what it imports from other files of the project.

        Returns:
            what becomes of it; a file that cannot be read has one diagnostic of the kind ``error``.
        """
        try:
            return self._notebook(raw, path) if path.endswith(NOTEBOOK) else self._script(raw, path)
        except CellError as error:
            return failed(error.message, error.line, error.col, error.cell)
        except SourceError as error:
            return failed(error.message, error.line, error.col)
        except RecursionError:
            return failed("its code is nested too deeply")
        except MemoryError:
            return failed(NO_MEMORY)
        except Exception as error:  # one file never ends the run of the others
            return failed(f"{TOOL_FAILS}{type(error).__name__}: {error}")

    def _script(self, raw: bytes, path: str) -> FileResult:
        if not self._concerns(raw, path):
            if len(raw) <= MOST_BYTES:
                check_readable(raw)
            return UNTOUCHED
        source, plan = self._plan(raw, path)
        if not plan.edits:
            return FileResult(None, plan.diagnostics, plan.calls, plan.listed)
        new = source.edited(plan.edits)
        _check_written(new)
        return FileResult(new, plan.diagnostics, plan.calls, plan.listed, plan.edits)

    def _notebook(self, raw: bytes, path: str) -> FileResult:
        notebook = Notebook(raw)
        if not notebook.cells or not self._concerns(notebook.script, path):
            return UNTOUCHED
        plan = self._plan(notebook.script, path)[1]
        diagnostics = by_place(_in_cell(notebook, d) for d in plan.diagnostics)
        listed = tuple(_in_cell(notebook, call) for call in plan.listed)
        if not plan.edits:
            return FileResult(None, diagnostics, plan.calls, listed)
        new = notebook.edited(plan.edits)
        _check_written(Notebook(new).script)
        return FileResult(new, diagnostics, plan.calls, listed)

    def _concerns(self, raw: bytes, path: str) -> bool:
        if not self.project.concerns(raw, path, self._on_objects):
            return False
        if len(raw) > MOST_BYTES:
            raise SourceError(
                "%.1f MB of Python are more than the tool reads (%d MB); if a program made "
                "them, let it make them for the NPU, or split the file" % (len(raw) / 1e6, MOST_BYTES // 1_000_000)
            )
        return True

    def _plan(self, raw: bytes, path: str) -> tuple[Source, _Plan]:
        self.project.settle()
        _, source, names, types = self.project.understand(raw, path)
        settings = self.settings
        context = _Context(
            source,
            names,
            types,
            settings.distributed,
            settings.compat_v1,
            settings.main,
            settings.compat_v1 and settings.enabled(MOVING),
        )
        if self.project.is_handed(raw, path):
            context.words = self.registry.words_of_others
        changes, diagnostics, said = self._collect(context)
        edits: list[Edit] = []
        if changes:
            edits = import_edits(source, names, changes)
            edits += [as_lifted(names, edit, change.node) for change in changes for edit in change.edits]
        found = list(fates(context, said))
        listed = places(context, found) if self.list_calls else ()
        return source, _Plan(tuple(edits), by_place(diagnostics), counts(found), tuple(listed))

    def _collect(self, context: Context) -> tuple[list[Change], list[Diagnostic], Said]:
        changes: list[Change] = []
        diagnostics: list[Diagnostic] = []
        said: Said = {}
        spans: list[tuple[int, int]] = []
        for rule, result in chain(self.registry.check(context), self.registry.check_last(context, spans)):
            node = result.node
            # What is inside an f-string is told at the f-string, which has a place for certain.
            result = result._replace(node=context.names.strings.get(result.node, result.node))
            if ignored(context.source, result.node, rule.code):
                continue
            if isinstance(result, Change):
                result = _possible(context, result, spans)
            if isinstance(result, Change):
                changes.append(result)
                spans += [(e.start, e.end) for e in result.edits]
            diagnostic = _diagnostic(context.source, rule, result)
            diagnostics.append(diagnostic)
            said.setdefault(node, set()).add((diagnostic.kind, rule.code))
        return changes, diagnostics, said


def _has_all(settings: Settings, needs: dict[str, Any]) -> bool:
    return all(getattr(settings, name) == value for name, value in needs.items())


_Placed = TypeVar("_Placed", Diagnostic, ApiCall)


def _in_cell(notebook: Notebook, placed: _Placed) -> _Placed:
    cell, line = notebook.place(placed.line)
    return placed._replace(cell=cell, line=line)


def _possible(context: Context, change: Change, spans: list[tuple[int, int]]) -> Result:
    """The change, or a finding where it cannot be made."""
    name = taken(change.uses, context.names)
    if name:
        return Finding(
            change.node, f"left as it is, because this file uses the name {name} for something else ({change.message})"
        )
    if any(broken_string(context.source, context.names, edit) for edit in change.edits):
        return Finding(
            change.node,
            "left as it is, because it stands inside an f-string, where what has to "
            f"be written cannot stand ({change.message})",
        )
    if loses_comment(context.source, change.edits):
        return Finding(
            change.node,
            "left as it is, because a comment stands inside the code that has to be "
            f"replaced or moved; put it before the statement, and run again ({change.message})",
        )
    for edit in change.edits:
        if any(edit.start < end and start < edit.end or start < edit.start < end for start, end in spans):
            return Finding(
                change.node,
                f"left as it is, because it stands inside code that another rule replaces ({change.message})",
            )
    return change


def _check_written(new: bytes) -> None:
    """What is written is Python, or nothing is written."""
    try:
        check_readable(new)
    except SourceError as error:
        raise SourceError(f"{TOOL_FAILS}what it would write is {error.message}")


def _diagnostic(source: Source, rule: Rule, result: Result) -> Diagnostic:
    line, col = source.place(result.node)
    kind = CHANGE if isinstance(result, Change) else FINDING
    return Diagnostic(line, col, rule.code, kind, result.message)
