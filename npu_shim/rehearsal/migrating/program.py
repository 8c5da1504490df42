"""The files of a program: those that the script may import, and those that an observed run imported."""

from __future__ import annotations

import argparse
import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Iterator, Mapping, Sequence

from npu_shim._host import whole_file
from npu_shim.import_hook import migrated_run
from npu_shim.rehearsal.migrating.migration import FACTS, SOURCE, TAKEN_BACK, Rewrite, UnconvertedPlace

if TYPE_CHECKING:
    from convert_tf2npu.api import Diagnostic, Facts, FileResult


class OutputExists(Exception):
    """The folder of the output has another file than the migration would write."""


class Program:
    """The files of a program and their conversion.

    Args:
        script: the path of the script.
        rules: the arguments of the rules, with those of facts.
        observed: the paths of the files that runs have imported.
        root: the folder of the program; None to find it.

    Attributes:
        root: the folder of the program.
    """

    def __init__(
        self, script: str, rules: argparse.Namespace, observed: Sequence[str], root: str | None = None
    ) -> None:
        conversions = migrated_run.make_conversions([script], rules, root)
        self.root = conversions.files.root
        if not os.path.isdir(self.root):
            self.root = os.path.dirname(self.root)
        known = {os.path.realpath(path): path for path in conversions.paths}  # a run may import a file by another path
        conversions.paths += [
            path
            for path in (_path_below(self.root, path, known) for path in observed)
            if path is not None and os.path.realpath(path) not in known
        ]
        self.script = self._relative_path(os.path.realpath(script))
        self._files: list[tuple[str, FileResult]] = conversions.convert_all()

    def _relative_path(self, path: str) -> str:
        return os.path.relpath(path, self.root).replace(os.sep, "/")

    @property
    def paths(self) -> list[str]:
        """The paths of the files."""
        return [path for path, _ in self._files]

    @property
    def relative_paths(self) -> list[str]:
        """The paths of the files relative to the folder of the program, with slashes."""
        return [self._relative_path(path) for path in self.paths]

    @property
    def changed_file_count(self) -> int:
        """The number of files that change."""
        return sum(result.new is not None for _, result in self._files)

    def _paths_and_diagnostics(self) -> Iterator[tuple[str, Diagnostic]]:
        for path, result in self._files:
            for diagnostic in result.diagnostics:
                yield self._relative_path(path), diagnostic

    def rewrites(self) -> list[Rewrite]:
        """Return the rewrites."""
        return [
            Rewrite(name, d.line, d.col, d.code, d.message, SOURCE if d.runs is None else FACTS, d.runs)
            for name, d in self._paths_and_diagnostics()
            if d.kind == "change"
        ]

    def no_facts_entry(self, rewrite: Rewrite, facts: Facts) -> str:
        """Return the value of ``--no-facts-for`` that leaves a rewrite out."""
        return f"{rewrite.code}:{facts.relative_path_of(os.path.join(self.root, rewrite.path))}:{rewrite.line}"

    def places_left(self) -> list[UnconvertedPlace]:
        """Return the places that are left, those that ran first."""
        places = [
            UnconvertedPlace(name, d.line, d.col, d.code, d.message, d.kind != "unreached")
            for name, d in self._paths_and_diagnostics()
            if d.kind != "change"
        ]
        return sorted(places, key=lambda place: not place.reached)

    def write_files(self, folder: str, replaces: bool) -> None:
        """Write the migrated program.

        Args:
            folder: is made if it is missing.
            replaces: True to replace files that differ.
        Raises:
            OutputExists: a file differs, or is one of the original. Nothing is written then.
        """
        originals = {os.path.realpath(path) for path, _ in self._files}
        texts: dict[str, bytes] = {}
        for path, result in self._files:
            target = os.path.join(folder, self._relative_path(path))
            if os.path.realpath(target) in originals:
                raise OutputExists(f"{target} is a file of the original. Give another folder.")
            with open(path, "rb") as stream:
                texts[target] = stream.read() if result.new is None else result.new
        different = [
            target
            for target, text in texts.items()
            if os.path.lexists(target) and whole_file.read_if_readable(target) != text
        ]
        if different and not replaces:
            raise OutputExists(f"{different[0]} exists and differs. Give another folder, or --force to replace it.")
        for target, text in texts.items():
            os.makedirs(os.path.dirname(target), exist_ok=True)
            whole_file.write_atomically(text, target)
        for path, _ in self._files:
            shutil.copymode(path, os.path.join(folder, self._relative_path(path)))


def _path_below(root: str, path: str, known: Mapping[str, str]) -> str | None:
    """Return the path of a file in a folder, perhaps by a link in it that leads to other files; None without one.

    Args:
        root: the folder.
        path: of the file.
        known: the paths of files in the folder by their real paths.
    """
    path = os.path.realpath(path)
    for real, linked in [(root, root), *known.items()]:
        while os.path.basename(real) == os.path.basename(linked) and real != linked:
            real, linked = os.path.dirname(real), os.path.dirname(linked)
        if path.startswith(os.path.join(real, "")):
            candidate = os.path.join(linked, os.path.relpath(path, real))
            if candidate.startswith(os.path.join(root, "")) and os.path.realpath(candidate) == path:
                return candidate
    return None


def with_basis_taken_back(rewrites: Sequence[Rewrite]) -> list[Rewrite]:
    """Return rewrites that were taken back."""
    return [replace(rewrite, basis=TAKEN_BACK) for rewrite in rewrites]
