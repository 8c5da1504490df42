"""The folder of the reports: all of them are there, or none."""

from __future__ import annotations

import os
from typing import Iterable

from ..engine.run import Run
from ..files.errors import UsageError
from ..files.staging import SUFFIX, Staging
from ..files.transaction import put_in_place
from .html.page import to_html
from .json_report import to_json
from .model import report_of
from .sarif import to_sarif
from .text_report import to_text

_NAMES = "report.txt", "report.json", "report.sarif", "report.html"


class Reports:
    """The reports of a run, written beside their folder and waiting for :meth:`publish`.

    Args:
        run: the run; the files of its source are as they were when it read them.
        folder: where the reports shall be.
        exit_code: with which the command is about to end, if nothing goes wrong.
        compat_v1: whether the scripts are to run on TensorFlow 2.

    Raises:
        UsageError: they cannot be written.
    """

    def __init__(self, run: Run, folder: str, exit_code: int, compat_v1: bool) -> None:
        self._folder = os.path.abspath(folder)
        self._waiting: Staging | None = None
        self._exit_code = exit_code
        self._report = report = report_of(run, compat_v1)
        try:
            above = self._folder
            while not os.path.lexists(above):
                above = os.path.dirname(above)
            if not os.path.isdir(above):
                raise UsageError(f"-r {folder}: {above} is there and is no folder")
            if above == self._folder:
                above = os.path.dirname(above)
            staging = Staging(os.path.join(above, f".{os.path.basename(self._folder)}-reports{SUFFIX}"), folder)
            staging.__enter__()
            self._waiting = staging
            os.mkdir(staging.new)
            for name, pieces in zip(
                _NAMES, (to_text(report), to_json(report), to_sarif(report, exit_code), to_html(report))
            ):
                _write(os.path.join(staging.new, name), pieces)
        except OSError as error:
            self.discard()
            raise UsageError(
                f"-r {folder}: the reports cannot be written: {error.strerror or error}; nothing was written"
            )

    def publish(self, exit_code: int) -> None:
        """Put the reports into their folder.

        Args:
            exit_code: with which the command ends.

        Raises:
            UsageError: they cannot be put there.
        """
        assert self._waiting
        try:
            if exit_code != self._exit_code:
                _write(os.path.join(self._waiting.new, "report.sarif"), to_sarif(self._report, exit_code))
            put_in_place(
                [(os.path.join(self._waiting.new, name), os.path.join(self._folder, name)) for name in _NAMES],
                self._waiting.journal,
                [self._folder],
            )
        except OSError as error:
            raise UsageError(f"-r {self._folder}: the reports cannot be written: {error.strerror or error}")

    def discard(self) -> None:
        """Take away what was not published."""
        if self._waiting:
            self._waiting.__exit__(None, None, None)
            self._waiting = None


def _write(path: str, pieces: Iterable[str]) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(pieces)
