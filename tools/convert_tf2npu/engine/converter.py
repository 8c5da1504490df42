"""Convert one file: bytes in, bytes and diagnostics out.

Nothing is read or written here: the command, the tests and the import hook share this code.
"""

from __future__ import annotations

from typing import Iterable, TypeVar

from ..files.extensions import NOTEBOOK
from ..files.message import Message
from ..files.texts import is_server_file
from ..project.project import Project
from ..project.source_files import MOST_BYTES
from ..rules.compat_v1.lift_plan import CODE as LIFTING, plan_lift_and_rebind_names
from ..syntax.edits import sort_edits
from ..syntax.notebook import Notebook
from ..syntax.notebook_cells import CellError
from ..syntax.source import Source, SourceError
from .plan import Planner
from .results import (
    CHANGE,
    ERROR,
    FINDING,
    NO_MEMORY,
    TOOL_FAILS,
    UNTOUCHED,
    ApiCall,
    Diagnostic,
    FileResult,
    failed_result,
    sorted_by_place,
)
from .settings import Settings

__all__ = ["CHANGE", "ERROR", "FINDING", "Converter", "Diagnostic", "FileResult"]


def make_project(settings: Settings, paths: Iterable[str] = (), fixed: Iterable[str] = ()) -> Project:
    """Return the files of a run, prepared as the settings require.

    Args:
        settings: which rules act.
        paths: of the Python files.
        fixed: those among them that are not converted.
    """
    lifts = settings.compat_v1 and settings.enabled(LIFTING)
    return Project(
        paths,
        fixed,
        plan_lift_and_rebind_names if lifts else None,
        settings.compat_v1 or settings.tf == "1",
        settings.tf_files,
    )


class Converter:
    """All rules with their settings.

    Args:
        settings: which rules act.
        project: the files of the run.
        list_calls: list the TensorFlow calls in the results, for a report; results always have their counts.
    """

    def __init__(
        self, settings: Settings = Settings(), project: Project | None = None, list_calls: bool = False
    ) -> None:
        self.project = project or make_project(settings)
        self._planner = Planner(settings, self.project, list_calls)

    def convert(self, raw: bytes, path: str = "") -> FileResult:
        """Convert a script, or a notebook if the path ends with ``.ipynb``. Check a file beside them by its name.

        Args:
            raw: the bytes of the file.
            path: its path, to resolve imports of other files of the project.

        Returns:
            the result; that of an unreadable file has one diagnostic of the kind ``error``.
        """
        try:
            if is_server_file(path):
                return FileResult(None, self._planner.findings_in_text(raw))
            return self._convert_notebook(raw, path) if path.endswith(NOTEBOOK) else self._convert_script(raw, path)
        except CellError as error:
            return failed_result(error.message, error.line, error.col, error.cell)
        except SourceError as error:
            return failed_result(error.message, error.line, error.col)
        except RecursionError:
            return failed_result("its code is nested too deeply")
        except MemoryError:
            return failed_result(NO_MEMORY)
        except Exception as error:  # one file never ends the run of the others
            return failed_result(Message("{0}{1}: {2}", TOOL_FAILS, type(error).__name__, error))

    def _convert_script(self, raw: bytes, path: str) -> FileResult:
        if not self._concerns_rules(raw, path):
            if len(raw) <= MOST_BYTES:
                Source(raw)  # raises if it is not Python
            return UNTOUCHED
        plan = self._planner.plan(raw, path)
        if not plan.edits:
            return FileResult(None, *plan[2:7], asked=plan.asked)
        new, edits = plan.source.bytes_with_edits(plan.edits), tuple(sort_edits(plan.edits))
        _raise_if_not_python(new)
        return FileResult(new, *plan[2:7], edits, plan.asked)

    def _convert_notebook(self, raw: bytes, path: str) -> FileResult:
        notebook = Notebook(raw)
        if not notebook.cells or not self._concerns_rules(notebook.script, path):
            return UNTOUCHED
        plan = self._planner.plan(notebook.script, path)
        diagnostics = sorted_by_place(_place_in_cell(notebook, d) for d in plan.diagnostics)
        listed = tuple(_place_in_cell(notebook, call) for call in plan.listed)
        if not plan.edits:
            return FileResult(None, diagnostics, plan.calls, listed, plan.version, plan.on_cpu)
        new = notebook.bytes_with_edits(plan.edits)
        _raise_if_not_python(Notebook(new).script)
        return FileResult(new, diagnostics, plan.calls, listed, plan.version, plan.on_cpu)

    def _concerns_rules(self, raw: bytes, path: str) -> bool:
        if not self._planner.concerns(raw, path):
            return False
        if len(raw) > MOST_BYTES:
            raise SourceError(
                Message(
                    "the file has {0} MB, and the tool reads {1} MB at most. "
                    "Split it, or change the program that writes it",
                    f"{len(raw) / 1e6:.1f}",
                    MOST_BYTES // 1_000_000,
                )
            )
        return True


_Placed = TypeVar("_Placed", Diagnostic, ApiCall)


def _place_in_cell(notebook: Notebook, placed: _Placed) -> _Placed:
    cell, line = notebook.cell_and_line(placed.line)
    return placed._replace(cell=cell, line=line)


def _raise_if_not_python(new: bytes) -> None:
    """Refuse to write a file that is not Python."""
    try:
        Source(new)
    except SourceError as error:
        raise SourceError(Message("{0}its output is {1}", TOOL_FAILS, error.message))
