"""The declared list of the record, docs/record/programs.toml: public programs, and how each is run.

A program is a table ``[[program]]`` with the keys of `Program`. `links` are pairs, `edits` and `plain` triples of a
file, a pattern and a replacement; `data` has a list of words for each call of public_data.py. Python before 3.11
reads the list with tomli, which pytest brings.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import sys
from typing import Any, Callable, Mapping, NamedTuple, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = os.path.join(HERE, "record", "programs.toml")
DRAWN, CHOSEN = "drawn", "chosen before the draw"
SEED = 65  # of the order in which repositories are drawn


class ListError(ValueError):
    """The list has a mistake."""


class Edit(NamedTuple):
    """A replacement by a regular expression, in a file of the project.

    Attributes:
        file: its path, or a pattern of `glob` for several files.
        pattern, replacement: as in `re.sub`.
    """

    file: str
    pattern: str
    replacement: str


class Defect(NamedTuple):
    """A defect that is planted in the original before its conversion.

    Attributes:
        kind: for the table, as in "rate 2 % higher".
        edits: that plant it.
    """

    kind: str
    edits: Sequence[Edit]


class Program(NamedTuple):
    """A public program, and how it is run.

    Attributes:
        repository, commit: on GitHub.
        kind: of program, for the table.
        tensorflow: the version it runs with, as in "1.15".
        folder: of the project in the repository, which is copied; "" for all of it.
        script: in the folder where it starts.
        start: that folder, in the project.
        project: the folder with all files of the program, from where it starts; "" for that of the script.
        arguments: of the script. ``{run}`` is a folder of the run.
        further_runs: arguments of further runs to observe, as of an evaluation. They have the files that earlier runs
            wrote, but those of ``{run}``.
        observed_steps: the steps of the runs to observe, where an evaluation comes after more than are compared; 0 for
            those.
        data: calls of public_data.py: kind, folder in the project, arguments.
        links: symbolic links to make, and their targets.
        edits: that make the script small, or let it run.
        why: the reason of the edits.
        defect: to plant, or None.
        steps: to compare.
        options: of the migration tool, besides ``-d auto``.
        plain: edits that take the NPU code out of a script, which is then also compared with this form under the alias.
        ranks: the number of ranks that also run it; 0 for none.
        ranks_options: of ``npu-shim verify --ranks``, as ``-d tf_strategy --original-arguments=--batch_size=64``.
        not_on_ranks: why ranks do not compute the same as one process. They are not run then.
        export: arguments of ``npu-shim export`` after a run of the migrated program: what it leaves, and options.
        origin: DRAWN from a list of repositories made before the first run, or CHOSEN.
        reason: one sentence, if the program cannot run here. It is not measured then.
        cause: one sentence about a verdict other than "agree".
    """

    repository: str
    commit: str
    kind: str
    tensorflow: str
    folder: str
    script: str
    start: str = ""
    project: str = ""
    arguments: str = ""
    further_runs: Sequence[str] = ()
    observed_steps: int = 0
    data: Sequence[Sequence[str]] = ()
    links: Sequence[Sequence[str]] = ()
    edits: Sequence[Edit] = ()
    why: str = ""
    defect: Defect | None = None
    steps: int = 20
    options: str = ""
    plain: Sequence[Edit] = ()
    ranks: int = 0
    ranks_options: str = ""
    not_on_ranks: str = ""
    export: str = ""
    origin: str = DRAWN
    reason: str = ""
    cause: str = ""

    @property
    def path(self) -> str:
        """The path of the script in the repository."""
        return "/".join(part for part in (self.folder, self.start, self.script) if part)

    @property
    def name(self) -> str:
        """The path on GitHub without the commit, and the version of TensorFlow, which name the entry."""
        return f"{self.repository}/{self.path}@{self.tensorflow}"

    @property
    def project_options(self) -> Sequence[str]:
        """The options of commands that name the folder of its files."""
        return ["--project", self.project] if self.project else []

    @property
    def observed(self) -> Sequence[Sequence[str]]:
        """The arguments of ``npu-shim observe`` for each run to observe, without the file of the facts."""
        options = ["--steps", str(self.observed_steps or self.steps), *self.project_options]
        options += shlex.split(self.options)
        return [[*options, self.script, *shlex.split(text)] for text in (self.arguments, *self.further_runs)]

    @property
    def link(self) -> str:
        """The address on GitHub."""
        return f"https://github.com/{self.repository}/blob/{self.commit}/{self.path}".replace(" ", "%20")


# --- values ------------------------------------------------------------------------------------------------------
def _sentence(text: str) -> str:
    if not re.fullmatch(r"[^\n]+\.", text):
        raise ListError("must be one sentence that ends with a full stop")
    return text


def _edits(rows: Sequence[Sequence[str]]) -> Sequence[Edit]:
    edits = [Edit(*row) for row in rows]
    for edit in edits:
        re.compile(edit.pattern)
    return edits


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "edits": _edits,
    "plain": _edits,
    "defect": lambda table: Defect(table["kind"], _edits(table["edits"])),
    "reason": _sentence,
    "cause": _sentence,
}
_TYPES = {str: str, int: int, tuple: list, type(None): dict}  # in TOML, by the type of the default
_NEEDED = "repository", "commit", "kind", "tensorflow", "script", "origin"


# --- the list ----------------------------------------------------------------------------------------------------
def read_programs(path: str = PATH) -> list[Program]:
    """Return the programs of the list.

    Raises:
        ListError: the list has a mistake; the error has the row and its key.
    """
    toml: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    with open(path, "rb") as stream:
        try:
            tables: Mapping[str, Any] = toml.load(stream)
        except toml.TOMLDecodeError as error:
            raise ListError(f"{path}: {error}")
    programs: list[Program] = []
    for number, row in enumerate(tables.get("program", []), 1):
        where = f"{path}: program {number} ({row.get('repository', '?')}, {row.get('script', '?')})"
        program = _program(row, where)
        if program.tensorflow not in tables["packages"]:
            raise ListError(f"{where}: the list has no packages for TensorFlow {program.tensorflow}")
        if program.name in {other.name for other in programs}:
            raise ListError(f"{where}: the same script is in the list already")
        programs.append(program)
    return programs


def _program(row: Mapping[str, Any], where: str) -> Program:
    values: dict[str, Any] = {"folder": ""}
    for key, value in row.items():
        if key not in Program._fields:
            raise ListError(f"{where}: unknown key {key!r}. The keys are {', '.join(Program._fields)}")
        try:
            if not isinstance(value, _TYPES[type(Program._field_defaults.get(key, ""))]):
                raise ListError(f"must not be {value!r}")
            values[key] = _CONVERSIONS.get(key, lambda value: value)(value)
        except (KeyError, TypeError, ValueError, re.error) as error:
            raise ListError(f"{where}: {key} {error}")
    for key in _NEEDED:
        if key not in row:
            raise ListError(f"{where}: {key} is missing")
    program = Program(**values)
    if program.edits and not program.why:
        raise ListError(f"{where}: why is missing. Give the reason of the edits")
    return program
