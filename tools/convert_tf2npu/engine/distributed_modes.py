"""The mode of ``-d auto``: how each file of a project trains on several devices, by what its programs use."""

from __future__ import annotations

import re
from typing import Callable, Iterable

from ..analysis.device_placement import is_test_file
from ..project.project import Project
from ..rules.base import Context, Rule
from ..semantics.module_index import Module

AUTO = "auto"
HOROVOD, STRATEGY = "horovod", "tf_strategy"
_SAYS = re.compile(rb"horovod|Strategy|_distribute|device|model_deploy")  # what a file has in which such a rule acts


class DistributedModes:
    """The modes of the files of a project.

    A file that imports Horovod, or has a strategy or towers, shows its mode. Any other file has the modes of the
    programs that use it. A script of one device has none.

    Args:
        project: the files.
        rules: all rules, of which some show a mode.
        context_of: returns the context of a module in no mode.
    """

    def __init__(self, project: Project, rules: Iterable[Rule], context_of: Callable[[Module], Context]) -> None:
        self._project = project
        self._rules = [rule for rule in rules if rule.mode_shown]
        self._context_of = context_of
        self._shown: dict[str, str] = {}  # by the paths of files that have been read
        self._showing: tuple[str, ...] | None = None
        self._has_strategy: bool | None = None
        self._using: dict[str, frozenset[str]] = {}  # by path

    def modes_of(self, raw: bytes, path: str) -> frozenset[str]:
        """Return the modes of a file: none, one, or those of different programs that use it.

        Args:
            raw: its bytes.
            path: its path; files outside the project have no programs.
        """
        path = self._project.files.absolute_path(path)
        shown = self._mode_shown(path) if path in self._project.paths else self._find_mode(raw, path)
        if shown:
            return frozenset({shown})
        if path not in self._project.paths:
            return frozenset()
        users = self._importers_and_file(path)
        return frozenset(
            self._mode_shown(other)
            for other in self._files_that_may_show()
            if not users.isdisjoint(self._importers_and_file(other))
        ) - {""}

    def may_have_strategy(self) -> bool:
        """Return False if facts show that no observed run reached a strategy."""
        if self._has_strategy is None:
            self._has_strategy = any(self._reaches_strategy(path) for path in self._files_that_may_show())
        return self._has_strategy

    def _reaches_strategy(self, path: str) -> bool:
        module = self._project.module(path)
        if module is None:  # not readable
            return False
        context = self._context_of(module)
        return any(
            not result.unused and context.runs_at(context.source.line_col_of_node(result.node)[0]) != 0
            for rule in self._rules
            if rule.mode_shown == STRATEGY
            for result in rule.module.check_file(context)
        )

    def _importers_and_file(self, path: str) -> frozenset[str]:
        """Return the files that import a file, directly or not, and this file, without tests of other files."""
        if path not in self._using:
            using = self._project.with_importers((path,))
            self._using[path] = frozenset(user for user in using if user == path or not is_test_file(user))
        return self._using[path]

    def _files_that_may_show(self) -> tuple[str, ...]:
        if self._showing is None:
            project = self._project
            self._showing = tuple(path for path in project.paths if _SAYS.search(project.raw(path)))
        return self._showing

    def _mode_shown(self, path: str) -> str:
        if path not in self._shown:
            self._shown[path] = self._find_mode(self._project.raw(path), path)
        return self._shown[path]

    def _find_mode(self, raw: bytes, path: str) -> str:
        """Return the mode that a file shows itself; Horovod if it shows both, because its calls stay as they are."""
        if not _SAYS.search(raw):
            return ""
        module = self._project.module(path) if path in self._project.paths else self._project.understand(raw, path)
        if module is None:  # not readable
            return ""
        context = self._context_of(module)
        shown = {rule.mode_shown for rule in self._rules if any(True for _ in rule.module.check_file(context))}
        return HOROVOD if HOROVOD in shown else STRATEGY if shown else ""
