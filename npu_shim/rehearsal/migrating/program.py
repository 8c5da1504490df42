"""The files of a program: those that the script may import, and those that an observed run imported."""

from __future__ import annotations

import argparse
import os
import shutil
from typing import TYPE_CHECKING, Iterator, Sequence

from npu_shim.import_hook import migrated_run
from npu_shim.rehearsal.migrating.migration import FACTS, SOURCE, TAKEN_BACK, Left, Rewrite

if TYPE_CHECKING:
    from convert_tf2npu.api import Diagnostic, FileResult


class OutputExists(Exception):
    """The folder of the output has another file than the migration would write."""


class Program:
    """The files of a program and their conversion.

    Args:
        script: the path of the script.
        rules: the arguments of the rules, with those of facts.
        observed: the paths of the files that runs have imported.
    """

    def __init__(self, script: str, rules: argparse.Namespace, observed: Sequence[str]) -> None:
        conversions = migrated_run.conversions([script], rules)
        conversions.paths += [path for path in observed if path not in conversions.paths]
        self._root = conversions.files.root
        if not os.path.isdir(self._root):
            self._root = os.path.dirname(self._root)
        self.script = self._name(os.path.realpath(script))
        self._files: list[tuple[str, FileResult]] = conversions.convert_all()

    def _name(self, path: str) -> str:
        return os.path.relpath(path, self._root).replace(os.sep, "/")

    @property
    def names(self) -> list[str]:
        """The paths of the files relative to the folder of the program, with slashes."""
        return [self._name(path) for path, _ in self._files]

    @property
    def changed(self) -> int:
        """The number of files that change."""
        return sum(result.new is not None for _, result in self._files)

    def _diagnostics(self) -> Iterator[tuple[str, Diagnostic]]:
        for path, result in self._files:
            for diagnostic in result.diagnostics:
                yield self._name(path), diagnostic

    def rewrites(self) -> list[Rewrite]:
        """Return the rewrites."""
        return [
            Rewrite(name, d.line, d.col, d.code, d.message, SOURCE if d.runs is None else FACTS, d.runs)
            for name, d in self._diagnostics()
            if d.kind == "change"
        ]

    def left(self) -> list[Left]:
        """Return the places that are left, those that ran first."""
        places = [
            Left(name, d.line, d.col, d.code, d.message, d.kind != "unreached")
            for name, d in self._diagnostics()
            if d.kind != "change"
        ]
        return sorted(places, key=lambda place: not place.reached)

    def write(self, folder: str, replaces: bool) -> None:
        """Write the migrated program.

        Args:
            folder: is made if it is missing.
            replaces: True to replace files that differ.
        Raises:
            OutputExists: a file differs. Nothing is written then.
        """
        texts: dict[str, bytes] = {}
        for path, result in self._files:
            target = os.path.join(folder, self._name(path))
            with open(path, "rb") as stream:
                texts[target] = stream.read() if result.new is None else result.new
        different = [target for target, text in texts.items() if os.path.lexists(target) and _read(target) != text]
        if different and not replaces:
            raise OutputExists(f"{different[0]} exists and differs. Give another folder, or --force to replace it.")
        for target, text in texts.items():
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target + ".part", "wb") as stream:
                stream.write(text)
            os.replace(target + ".part", target)
        for path, _ in self._files:
            shutil.copymode(path, os.path.join(folder, self._name(path)))


def taken_back(before: Sequence[Rewrite], entries: Sequence[str]) -> list[Rewrite]:
    """Return the rewrites among those of a program that were taken back, by their entries."""
    return [
        Rewrite(r.path, r.line, r.column, r.code, r.message, TAKEN_BACK, r.runs) for r in before if entry(r) in entries
    ]


def entry(rewrite: Rewrite) -> str:
    """Return the value of ``--no-facts-for`` that leaves a rewrite out."""
    return f"{rewrite.code}:{rewrite.path}:{rewrite.line}"


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return None
