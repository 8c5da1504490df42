"""Migrate the public programs of the record, and keep what each run shows.

``python docs/make_record.py`` takes the programs of record/programs.toml that run with the TensorFlow of this Python.
For each it brings the files of its commit, observes runs of the original, converts it with what they show and
verifies the result (``npu-shim migrate``). Where the list has them, it also verifies a planted defect, ranks and an
export. It writes the row in record/results.tsv, and makes the page docs/record.md anew. A row that got worse is
printed and written, with the figures that it had, and the exit code is 1. A program whose migrated script imports files
of the original is not measured: let the edits that change its search path name folders of ``__file__``, as others in
the list do. ``--help`` has the options.
record/programs.toml names the packages that the programs need besides.
"""

from __future__ import annotations

import datetime
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
from typing import Any, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import record_page  # noqa: E402
import verified  # noqa: E402
from record_list import Edit, Program, read_programs  # noqa: E402
from record_results import (  # noqa: E402
    AGREE,
    FAILS,
    NOT_RUN,
    ORIGINAL_FAILS,
    TRAINS_NOTHING,
    Result,
    is_missing,
    kept,
    with_former_figures,
    worse,
)

_TIMEOUT = 1800  # seconds of a run
_TIMEOUT_ALONE = 600  # of the original without a conversion
_PLAIN = Edit(
    "**/*.py",
    r"(?m)^(?:from|import) (?:npu_bridge|npu_device|hccl)\b.*",
    "import tensorflow as tf; from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig",
)


class MissingModule(RuntimeError):
    """A program needs a package that is not installed."""


class Measuring:
    """The measurement of a program.

    Args:
        program: which.
        sources: the folder of the clones.
        work: an empty folder.
    """

    def __init__(self, program: Program, sources: str, work: str) -> None:
        self._program, self._sources, self._work = program, sources, work
        self._arguments = shlex.split(program.arguments)
        self._rules = shlex.split(program.options)

    def _path(self, *names: str) -> str:
        return os.path.join(self._work, *names)

    def _start(self, project: str) -> str:
        return self._path(project, self._program.start)

    def _root(self) -> str:
        """Return the folder of the files of the program."""
        folder = self._program.project or os.path.dirname(self._program.script)
        return os.path.normpath(os.path.join(self._start("original"), folder))

    def _project(self, name: str) -> str:
        return verified.project(self._program, self._sources, self._path(name))

    def measure(self, known: Result | None) -> Result:
        """Return the result.

        Args:
            known: a result that keeps its planted defect, ranks and export; None to measure these, too.
        Raises:
            MissingModule: a package is not installed.
            RuntimeError: the data of the program cannot be made.
            ValueError: an edit changes nothing, or the migrated script imported files of the original.
        """
        begin = time.time()
        commit = self._project("original")
        head = Result(self._program.name, commit, date=datetime.date.today().isoformat(), version=verified.own_commit())
        try:
            result = self._migrated(head)
            if self._program.plain and result.verdict == AGREE:
                result = self._as_port(result)
        except RuntimeError as error:
            result = head._replace(verdict=NOT_RUN, reason=failure(str(error)))
        if result.verdict == NOT_RUN:
            result = self._alone(result)
        if result.original_trains and result.verdict != FAILS:
            try:
                result = self._with_further_figures(result, known or Result("", ""))
            except RuntimeError as error:
                result = result._replace(verdict=FAILS, reason=failure(str(error)))
        result = result._replace(seconds=round(time.time() - begin))
        named = zip(result._fields, result)
        texts: dict[str, Any] = {name: self._relative(text) for name, text in named if isinstance(text, str)}
        return result._replace(**texts)

    def _with_further_figures(self, result: Result, known: Result) -> Result:
        """Return a result with the planted defect, the ranks and the export that the list declares."""
        return result._replace(
            defect=known.defect or (self._found_defect() if self._program.defect else ""),
            ranks=known.ranks or (self._on_ranks() if self._program.ranks else ""),
            export=known.export or (self._exported() if self._program.export else ""),
        )

    def _relative(self, text: str) -> str:
        """Return a text without the folders of this machine."""
        for folder in (self._work, os.path.realpath(self._work), verified.ROOT, sys.prefix):
            text = text.replace(os.path.join(folder, ""), "")
        return " ".join(text.split())

    def _migrated(self, head: Result) -> Result:
        """Observe the original, convert it, and verify the conversion.

        Raises:
            ValueError: the migrated script imported files of the original.
        """
        script, start, reports = self._program.script, self._start("original"), self._path("reports")
        steps, facts = ["--steps", str(self._program.steps)], []
        if self._program.further_runs or self._program.observed_steps:
            os.makedirs(reports)
            facts = ["--facts", self._path("facts.json")]
            for arguments in self._program.observed:
                verified.run(["-m", "npu_shim", "observe", "-o", facts[1], *arguments], start, codes=(0,))
            shutil.rmtree(self._path("original"))  # with what the runs wrote
            self._project("original")
        command = ["-m", "npu_shim", "migrate", "-q", "-o", self._path("migrated"), "-r", reports, *steps]
        command += ["--timeout", str(_TIMEOUT), *facts, *self._program.project_options, *self._rules]
        command += [script, "--", *self._arguments]
        output = verified.run(command, start, codes=range(4))
        if not os.path.exists(os.path.join(reports, "migrate.json")):
            return head._replace(verdict=NOT_RUN, reason=failure(output))
        migration = verified.read(os.path.join(reports, "migrate.json"))
        if migration["verified"]["steps"]["original"] and not migration["verified"]["steps"]["migrated"]:
            self._link_other_files(self._root())
            verified.run(command, start, codes=range(4))
            migration = verified.read(os.path.join(reports, "migrate.json"))
        calls, before = self._counts()
        bases = [rewrite["basis"] for rewrite in migration["rewrites"]]
        reached = [place["reached"] for place in migration["left"]]
        verification = verified.read(os.path.join(reports, "verify", "verify.json"))
        check_imports(verification)
        return with_verdict(head, verification)._replace(
            calls=calls,
            rewrites=len(bases) - bases.count("taken back"),
            by_facts=bases.count("facts"),
            reached=sum(reached),
            unreached=len(reached) - sum(reached),
            before=before,
        )

    def _link_other_files(self, folder: str) -> None:
        """Give the migrated program the files that the original may read from its own folder, as migrate advises."""
        for base, folders, names in os.walk(folder):
            targets = os.path.normpath(self._path("migrated", os.path.relpath(base, folder)))
            for name in (*folders, *names):
                if not os.path.exists(os.path.join(targets, name)):
                    os.symlink(os.path.join(base, name), os.path.join(targets, name))
            folders[:] = [name for name in folders if not os.path.islink(os.path.join(targets, name))]

    def _counts(self) -> tuple[int, int]:
        """Return the calls of TensorFlow in the files of the program, and the places left without facts."""
        from npu_shim.import_hook import migrated_run

        script = os.path.join(self._start("original"), self._program.script)
        rules = migrated_run.rule_arguments(["-d", "auto", *self._rules])
        conversions = migrated_run.make_conversions([script], rules, self._root() if self._program.project else None)
        root, output = conversions.files.root, self._path("migrated")
        conversions.paths = [
            os.path.join(root, os.path.relpath(os.path.join(folder, name), output))
            for folder, _, names in os.walk(output)
            for name in names
        ]
        results = [result for _, result in conversions.convert_all()]
        places = [place for result in results for place in result.diagnostics if place.kind != "change"]
        return sum(result.calls.total for result in results), len(places)

    def _as_port(self, head: Result) -> Result:
        """Verify a script of the vendor's packages, whose conversion agrees, against its form without them."""
        shutil.copytree(self._path("original"), self._path("plain"), symlinks=True)
        verified.edit(self._path("plain"), [_PLAIN, *self._program.plain])
        return with_verdict(head, self._verify("plain", "original", "reports"))

    def _verify(self, original: str, migrated: str, reports: str, options: Sequence[str] = ()) -> Any:
        """Return the result of ``npu-shim verify`` as data.

        Args:
            original, migrated: names of projects; "" to convert the original in memory.
            reports: the name of the folder of the reports.
            options: further ones.
        """
        scripts = [self._program.script]
        if migrated:
            scripts.append(os.path.join(self._start(migrated), self._program.script))
        options = ["--steps", str(self._program.steps), "--timeout", str(_TIMEOUT), "--copy", *options]
        options += self._program.project_options
        arguments = [*options, *self._rules, *scripts, "--", *self._arguments]
        return verified.verify(self._program.name, arguments, self._start(original), self._path(reports))

    def _alone(self, result: Result) -> Result:
        """Run the original by itself. Return the result with whose fault it is that nothing is compared.

        Raises:
            MissingModule: a package is not installed.
        """
        program = self._program
        self._project("alone")
        os.makedirs(self._path("run"), exist_ok=True)
        arguments = [word.replace("{run}", self._path("run")) for word in self._arguments]
        command = ["-m", "npu_shim", "run", "--alias", program.script, *arguments]
        try:
            verified.run(command, self._start("alone"), codes=(0,), timeout=_TIMEOUT_ALONE)
        except subprocess.TimeoutExpired:
            return result._replace(verdict=FAILS)
        except RuntimeError as error:
            reason = failure(str(error))
            if reason.startswith("ModuleNotFoundError"):
                raise MissingModule(
                    f"{reason}. record/programs.toml names packages for TensorFlow {program.tensorflow}"
                )
            return result._replace(verdict=ORIGINAL_FAILS, reason=reason)
        return result._replace(verdict=TRAINS_NOTHING if _records_nothing(result.reason) else FAILS)

    def _found_defect(self) -> str:
        """Return the verdict on the original and a conversion of it with the planted defect."""
        self._project("planted")
        verified.edit(self._path("planted"), self._program.defect.edits if self._program.defect else [])
        # 2: a file of the project is of Python 2
        verified.run([verified.TOOL, "-i", self._path("planted"), "-o", self._path("converted")], codes=(0, 1, 2))
        return verified.verdict(self._verify("original", "converted", "planted_reports"))

    def _on_ranks(self) -> str:
        """Return the verdict on the original and ranks of its conversion."""
        facts = self._path("reports", "facts.json")
        options = ["--ranks", str(self._program.ranks), *shlex.split(self._program.ranks_options)]
        options += ["--facts", facts] if os.path.exists(facts) else []
        if not any(option in options for option in ("-d", "--distributed")):
            options += ["-d", "auto"]
        return verified.verdict(self._verify("original", "", "rank_reports", options))

    def _exported(self) -> str:
        """Train the migrated program a few steps, and return the last line about the export of what it leaves."""
        self._project("trained")
        script, start = self._program.script, self._start("trained")
        root = os.path.dirname(os.path.join(start, script))
        for folder, _, names in os.walk(self._path("migrated")):
            for name in names:
                below = os.path.relpath(os.path.join(folder, name), self._path("migrated"))
                shutil.copyfile(os.path.join(folder, name), os.path.join(root, below))
        steps = ["-o", self._path("trained.json"), "--steps", str(self._program.steps)]
        arguments = [word.replace("{run}", self._path("run")) for word in self._arguments]
        export = [word.replace("{run}", self._path("run")) for word in shlex.split(self._program.export)]
        try:
            verified.run(["-m", "npu_shim", "observe", *steps, script, *arguments], start, codes=(0,))
            command = ["-m", "npu_shim", "export", "-o", self._path("exported"), *export]
            return "equal: " + last_line(verified.run(command, start, codes=(0,)))
        except RuntimeError as error:
            return "not exported: " + failure(str(error))


def with_verdict(head: Result, verification: Any) -> Result:
    """Return a result with the verdict of ``npu-shim verify``, and what it compared."""
    verdict = verification["verdict"]
    reason = "" if verdict == AGREE or not verification["problems"] else verification["problems"][0]
    return head._replace(
        steps=verification["original"]["steps"], names=len(verification["streams"]), verdict=verdict, reason=reason
    )


def check_imports(verification: Any) -> None:
    """Check that the migrated script imported no file of the original, so that a verdict is about the conversion.

    Raises:
        ValueError: it did.
    """
    from npu_shim.rehearsal.verifying import FILES_OF_ORIGINAL

    begin = FILES_OF_ORIGINAL.split("{0}", maxsplit=1)[0]
    of_original = [sentence for sentence in verification["problems"] if sentence.startswith(begin)]
    if of_original:
        raise ValueError(of_original[0])


def _records_nothing(reason: str) -> bool:
    """Return True for the reason of verify that the original shows nothing to compare."""
    from npu_shim.rehearsal.verifying import NOTHING_COMPARED, NOTHING_RECORDED

    return reason in (NOTHING_COMPARED, NOTHING_RECORDED)


def last_line(text: str) -> str:
    """Return the last line of an output that is not empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def failure(text: str) -> str:
    """Return the line of an output that names its last error, or the last line.

    TensorFlow adds lines about the graph to its errors.
    """
    errors = re.findall(r"(?m)^[\w.]*(?:Error|Exception)\b.*", text)
    return last_line(errors[-1] if errors else text)


def chosen(
    programs: Sequence[Program], version: str, only: str, missing: bool, sample: int | None
) -> Sequence[Program]:
    """Return programs that run with a version of TensorFlow.

    Args:
        programs: all.
        version: of TensorFlow.
        only: a regular expression that names match.
        missing: only those without a result, or with one that lacks a figure which the list declares.
        sample: that many, others each day; None for all.
    Raises:
        ValueError: no program of this version that runs here matches.
    """
    results = kept(programs).read()
    rows = [
        program
        for program in programs
        if version.startswith(program.tensorflow + ".") and not program.reason and re.search(only, program.name)
    ]
    if not rows:
        raise ValueError(f"no program matches {only!r} that runs here with TensorFlow {version}")
    if missing:
        rows = [program for program in rows if is_missing(program, results.get(program.name))]
    if sample is not None and sample < len(rows):
        rows = random.Random(datetime.date.today().isoformat()).sample(rows, sample)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure programs, keep their results, and make the page."""
    parser = verified.parser(__doc__, "only entries without a result, or without counts or a declared figure")
    parser.add_argument("--sample", type=int, metavar="N", help="only N of the programs, others each day")
    parser.add_argument("--quick", action="store_true", help="measure no planted defects, ranks and exports anew")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    programs, failures = read_programs(), 0
    if not options.table:
        import tensorflow as tf

        try:
            rows = chosen(programs, tf.__version__, options.only, options.missing, options.sample)
        except ValueError as error:
            parser.error(str(error))
        verified.use_stand_ins()
        for program in rows:
            before = kept(programs).read().get(program.name)
            try:
                with verified.folder_of(program.name, options.keep) as work:
                    result = Measuring(program, options.sources, work).measure(before if options.quick else None)
            except subprocess.CalledProcessError:
                clone = f"git clone --bare https://github.com/{program.repository}"
                where = os.path.join(options.sources, program.repository)
                print(f"{program.name}: no checkout. Run: {clone} {where}", file=sys.stderr, flush=True)
                continue
            except (RuntimeError, ValueError) as error:
                print(f"{program.name}: not measured. {error}", file=sys.stderr, flush=True)
                failures += not isinstance(error, MissingModule)
                continue
            changes = worse(before, result)
            print(result.line, *changes, sep="\n    ", file=sys.stderr, flush=True)
            failures += bool(changes)
            if not options.check:
                kept(programs).add(with_former_figures(before, result))
    if not options.check:
        record_page.write(programs)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
