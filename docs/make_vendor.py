"""Convert the programs of the record with the vendor's migration tool, and compare what it leaves with the original.

``python docs/make_vendor.py`` takes the programs of record/programs.toml that run with the TensorFlow of this Python,
1.15 or 2.6. It converts the files that a program imports with the vendor's tool as its documentation says, and with
ours, both from the source alone. It counts the changes of both (record_changes.py). Where the original trains here
(record/results.tsv), ``npu-shim verify`` compares it with the vendor's conversion, whose packages the alias serves.
The tool needs pandas 1.3.5, xlrd 1.2.0, openpyxl and google_pasta.
"""

from __future__ import annotations

import ast
import datetime
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import record_changes  # noqa: E402
import record_page  # noqa: E402
import record_vendor  # noqa: E402
import verified  # noqa: E402
from make_record import Measuring, last_line, with_verdict  # noqa: E402
from record_list import read_programs  # noqa: E402
from record_results import Result, kept  # noqa: E402
from record_vendor import FAILS, NO_SYNTAX, PORT, VendorResult  # noqa: E402


class VendorMeasuring(Measuring):
    """The measurement of a program with the vendor's tool. The arguments are those of `Measuring`."""

    def compare(self, tool: str, known: Result | None, before: VendorResult | None) -> VendorResult:
        """Return the result.

        Args:
            tool: the folder of the vendor's tool.
            known: the result of the record, which says if the original trains here.
            before: a result that keeps its verdict; None to run the conversion.
        """
        program = self._program
        head = VendorResult(program.name, record_vendor.COMMIT, date=datetime.date.today().isoformat())
        if program.plain:
            return head._replace(verdict=PORT)
        self._project("original")
        paths = self._files()
        text = "\n".join(record_changes.text_of(os.path.join(self._path("source"), path)) for path in paths)
        if record_vendor.outside(text):
            return head._replace(verdict=record_vendor.outside(text))
        options = record_vendor.options_for(text, program.tensorflow)
        head = head._replace(options=" ".join(options), files=len(paths))
        ours = ["-i", self._path("source"), "-o", self._path("ours"), "-d", "auto", *self._rules]
        verified.run([verified.TOOL, *ours], codes=(0, 1, 2))
        lines, kinds = self._counted("ours", paths, options)
        head = head._replace(our_lines=lines, our_kinds=kinds)
        try:
            made = record_vendor.convert(
                tool, self._path("source"), self._path("made"), self._entry, options, "Estimator" in text
            )
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return head._replace(verdict=FAILS, reason=self._relative(last_line(str(error))))
        lines, kinds = self._counted(made, paths, options)
        head = head._replace(lines=lines, kinds=kinds)
        broken = [path for path in paths if self._parses("source", path) and not self._parses(made, path)]
        if broken:
            return head._replace(verdict=NO_SYNTAX, reason=broken[0])
        if before is not None:
            return head._replace(verdict=before.verdict, reason=before.reason)
        if not _trains(known):
            return head
        shutil.copytree(self._path("original"), self._path("vendor"), symlinks=True)
        for path in paths:
            shutil.copyfile(os.path.join(made, path), self._path("vendor", path))
        verification = self._verify("original", "vendor", "reports")
        if not (verification["original"]["completed"] and verification["original"]["steps"]):
            raise RuntimeError(f"The original shows no training step. {verification['problems'][:1]}")
        outcome = with_verdict(Result("", ""), verification)
        reason = re.sub(r".* ended with exit code \d+.*? Its error: (.*)\. See its output in .*", r"\1", outcome.reason)
        return head._replace(verdict=outcome.verdict, reason=self._relative(reason))

    @property
    def _entry(self) -> str:
        return os.path.join(self._program.start, self._program.script)

    def _counted(self, folder: str, paths: Sequence[str], options: Sequence[str]) -> tuple[int, str]:
        """Return the number of changed lines, and the kinds of changes as text, of a conversion in a folder."""
        folders = self._path("source"), self._path(folder)
        changes = record_changes.count(*folders, paths, self._entry, "-d" in options)
        return changes.lines, record_vendor.text_of_kinds(changes.kinds)

    def _parses(self, folder: str, path: str) -> bool:
        try:
            ast.parse(record_changes.text_of(self._path(folder, path)))
        except SyntaxError:
            return False
        return True

    def _files(self) -> list[str]:
        """Copy the project files that the program imports into a folder of their own. Return their paths in it."""
        from npu_shim.import_hook import migrated_run

        root = os.path.realpath(self._path("original"))
        script = os.path.join(root, self._program.start, self._program.script)
        conversions = migrated_run.make_conversions([script], migrated_run.rule_arguments(self._rules), root)
        paths = [os.path.relpath(path, root) for path in conversions.paths]
        for path in paths:
            target = os.path.join(self._path("source"), path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(os.path.join(root, path), target)
        return paths


def _trains(known: Result | None) -> bool:
    """Return True if the original of a result of the record trains here."""
    return known is not None and known.original_trains and bool(known.steps)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure programs, keep their results, and make the page."""
    parser = verified.parser(__doc__, "only entries without a result, or without a verdict though the original trains")
    parser.add_argument("--quick", action="store_true", help="convert and count, keep the verdicts")
    options = parser.parse_args(arguments)
    programs, failures = read_programs(), 0
    if not options.table:
        import tensorflow as tf

        version = tf.__version__
        if not version.startswith(record_vendor.VERSIONS):
            parser.error(f"the vendor's tool is for TensorFlow {' and '.join(record_vendor.VERSIONS)}, not {version}")
        lacking = [name for name in record_vendor.PACKAGES if importlib.util.find_spec(name) is None]
        if lacking:
            parser.error(
                f"the vendor's tool needs {', '.join(lacking)}. docs/record.md has the command that installs them"
            )
        verified.use_stand_ins()
        results = kept(programs).read()
        rows = [program for program in programs if version.startswith(program.tensorflow + ".")]
        with tempfile.TemporaryDirectory() as folder:
            tool = record_vendor.write_tool(rows[0].tensorflow, options.sources, folder)
            for program in (program for program in rows if re.search(options.only, program.name)):
                known, before = results.get(program.name), record_vendor.kept(programs).read().get(program.name)
                if options.missing and before and (before.verdict or not _trains(known)):
                    continue
                try:
                    with verified.folder_of(program.name, options.keep) as work:
                        measuring = VendorMeasuring(program, options.sources, work)
                        result = measuring.compare(tool, known, before if options.quick else None)
                except (RuntimeError, ValueError, OSError, subprocess.CalledProcessError) as error:
                    print(f"{program.name}: not measured. {error}", file=sys.stderr, flush=True)
                    failures += 1
                    continue
                print(*result, sep="\t", file=sys.stderr, flush=True)
                record_vendor.kept(programs).add(result)
    record_page.write(programs)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
