"""The folder of the reports: all of them, or none. A new format is a function in the table below."""

from __future__ import annotations

import os
from typing import Callable, Iterator

from ..engine.run import Run
from ..files.errors import UsageError
from ..files.staging import SUFFIX, Staging
from ..files.targets import nearest_existing_path
from ..files.transaction import put_in_place
from .content import Report, report_of
from .html.page import to_html
from .json_report import to_json
from .language import ENGLISH, Language
from .sarif import to_sarif
from .text_report import to_text

# The name of each report, and the function that returns its text in pieces.
WRITERS: dict[str, Callable[[Report], Iterator[str]]] = {
    "report.txt": to_text,
    "report.json": to_json,
    "report.sarif": to_sarif,
    "report.html": to_html,
}


class Reports:
    """The reports of a run, written to a hidden folder until :meth:`publish`.

    Args:
        run: the run; its source has not changed since the run read it.
        folder: the folder of the reports.
        exit_code: the exit code of the command, if no error follows.
        compat_v1: True if the scripts are to run on TensorFlow 2.
        translate: the language of the text and the HTML; JSON and SARIF are always English.

    Raises:
        UsageError: they cannot be written.
    """

    def __init__(self, run: Run, folder: str, exit_code: int, compat_v1: bool, translate: Language = ENGLISH) -> None:
        self._folder = os.path.abspath(folder)
        self._waiting: Staging | None = None
        self._report = report_of(run, compat_v1, exit_code, translate)
        try:
            above = nearest_existing_path(self._folder)
            if not os.path.isdir(above):
                raise UsageError("-r {0}: {1} is not a folder", folder, above)
            if above == self._folder:
                above = os.path.dirname(above)
            staging = Staging(os.path.join(above, f".{os.path.basename(self._folder)}-reports{SUFFIX}"), folder)
            staging.__enter__()
            self._waiting = staging
            os.mkdir(staging.new)
            _write_reports(self._report, staging.new)
        except OSError as error:
            self.discard()
            raise UsageError(
                "-r {0}: cannot write the reports: {1}. Nothing was written", folder, error.strerror or error
            )

    def publish(self, exit_code: int) -> None:
        """Move the reports into their folder.

        Args:
            exit_code: the exit code of the command.

        Raises:
            UsageError: they cannot be moved there.
        """
        assert self._waiting
        try:
            if exit_code != self._report.exit_code:  # a file could not be copied, and the source is as it was
                _write_reports(self._report._replace(exit_code=exit_code), self._waiting.new)
            put_in_place(
                [(os.path.join(self._waiting.new, name), os.path.join(self._folder, name)) for name in WRITERS],
                self._waiting.journal,
                [self._folder],
            )
        except OSError as error:
            raise UsageError("-r {0}: cannot write the reports: {1}", self._folder, error.strerror or error)

    def discard(self) -> None:
        """Remove what was not published."""
        if self._waiting:
            self._waiting.__exit__(None, None, None)
            self._waiting = None


def _write_reports(report: Report, folder: str) -> None:
    for name, to_pieces in WRITERS.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(to_pieces(report))
