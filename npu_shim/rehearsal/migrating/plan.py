"""Observe a script, convert it with what was seen, verify it, and take back the rewrites with which it departs."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Callable, Sequence

from npu_shim._host import host_env, whole_file
from npu_shim.distributed.ranktable.model import count_text
from npu_shim.import_hook.outside_files import paths_text
from npu_shim.import_hook.tool import with_package_path
from npu_shim.launching.progress.display import Display
from npu_shim.launching.progress.status import PIPE_VARIABLE
from npu_shim.rehearsal.failures import advice_on_output
from npu_shim.rehearsal.files.kept import leftover_stores, restore_files
from npu_shim.rehearsal.migrating.bisection import departing_rewrites
from npu_shim.rehearsal.migrating.migration import FACTS, Migration, Observed, Rewrite
from npu_shim.rehearsal.migrating.program import Program, with_basis_taken_back
from npu_shim.rehearsal.planning import Plan
from npu_shim.rehearsal.result import AGREE, NOT_REPRODUCIBLE, NOT_RUN, Result

if TYPE_CHECKING:
    from convert_tf2npu.api import ObservedRun

FILE = "facts.json"  # in the folder of the reports
VERIFY, BISECTION = "verify", "bisection"  # folders of runs in it
_LOG = "observe.log"
_LINES_SHOWN = 15
_FILES = (
    "{0} has the Python files of the program only. If the script reads others from its own folder, copy them there and "
    "give the command again."
)
_STOPPED = (
    "Each observed run ended after its steps. What the program does later was not seen: with other sizes, as in an "
    "evaluation, it may fail or compile again. Observe a whole run before you train for long."
)
_OUTSIDE = "Not converted, because outside of the folder of the program: {0}. To convert all, give --project {1}."


class NotObserved(Exception):
    """The original did not run to its end."""


@dataclass(frozen=True)
class Migrating:
    """The settings of a migration.

    Attributes:
        script: the path of the original.
        arguments: its own.
        output: the folder of the migrated program.
        reports: the folder of the reports.
        rules: the arguments of the rules; ``facts`` is the file of facts, or None to observe a run.
        steps: the training steps of the observed run and of the verification; None for all.
        replaces: True to replace files of the output that differ.
        timeout: the seconds that a run may take.
        report: prints a line about the progress.
        display: the command whose lines show the progress of the runs; None to show none.
        module: the name by which Python runs the script as a module in this folder; None for a script.
        project: the folder of the project; None for that of the script.
    """

    script: str
    arguments: Sequence[str]
    output: str
    reports: str
    rules: argparse.Namespace
    steps: int | None
    replaces: bool
    timeout: float | None
    report: Callable[[str], None]
    display: str | None = None
    module: str | None = None
    project: str | None = None

    def migrate(self) -> Migration:
        """Migrate the program.

        Raises:
            NotObserved: the original did not run to its end.
            UsageError: the facts cannot be used.
            OutputExists: the output has other files.
        """
        from convert_tf2npu.api import read_facts

        path = self.rules.facts or self._observe_facts()
        facts = read_facts(path)
        rules = self._rules_with_facts(path, ())
        observed = [os.path.join(facts.root, name) for name in facts.files]
        program = Program(self.script, rules, observed, self.project)
        rewrites = program.rewrites()
        program.write_files(self.output, self.replaces)
        of_facts: dict[str, list[Rewrite]] = {}
        for rewrite in rewrites:
            if rewrite.basis == FACTS:
                of_facts.setdefault(program.no_facts_entry(rewrite, facts), []).append(rewrite)
        number = sum(map(len, of_facts.values()))
        self.report(f"wrote {self.output}: {count_text(len(rewrites), 'rewrite')}, {number} by what was observed")
        verified = self._verify(rules, program)
        notes, back = [], []
        if all(run.ended == "stopped" for run in facts.runs):
            notes.append(_STOPPED)
        outside = sorted({path for run in facts.runs for path in run.outside})
        if outside:
            notes.append(_note_about_files(outside, facts.root))
        if verified.verdict not in (AGREE, NOT_REPRODUCIBLE) and of_facts:
            self.report("searching the rewrites that make the difference")
            left_out = departing_rewrites(
                list(of_facts), lambda without: self._program_agrees(self._rules_with_facts(path, without), program)
            )
            if left_out is None:
                notes.append("The difference does not come from a rewrite that rests on observed runs.")
            else:
                back = with_basis_taken_back([rewrite for name in left_out for rewrite in of_facts[name]])
                notes += [
                    f"Taken back, because the program computes something else with it: {r.code} at {r.place_text}."
                    for r in back
                ]
                rules = self._rules_with_facts(path, left_out)
                program = Program(self.script, rules, observed, self.project)
                program.write_files(self.output, True)
                verified = self._verify(rules, program)
        if verified.verdict == NOT_RUN or verified.original.steps and not verified.migrated.steps:
            notes.append(_FILES.format(self.output))
        if not verified.original.steps:
            notes.append("The original made no training step that was recorded.")
        return Migration(
            self.script,
            list(self.arguments),
            self.output,
            path,
            [Observed(list(run.command), run.tensorflow, run.python, run.steps, run.ended) for run in facts.runs],
            len(program.relative_paths),
            program.changed_file_count,
            program.rewrites() + back,
            program.places_left(),
            verified,
            notes,
        )

    def _observe_facts(self) -> str:
        """Return the path of the facts of this command: those of an earlier run of it, or of one that runs now."""
        path = os.path.join(self.reports, FILE)
        command = (self.module or self.script, *self.arguments)
        if os.path.exists(path) and self._has_facts(path, command):
            self.report(f"using the facts in {path}. Remove the file to observe again")
            return path
        self.report(f"observing {self.script}")
        log = os.path.join(self.reports, _LOG)
        code = self._run_observation(path, command, log)
        if code:
            with open(log, encoding="utf-8", errors="replace") as output:
                text = output.read()
            last = "\n".join(text.rstrip().split("\n")[-_LINES_SHOWN:])
            advice = advice_on_output(text)
            raise NotObserved(
                f"{self.script} ended with exit code {code}. {advice}The whole output is in {log}:\n{last}"
            )
        return path

    def _has_facts(self, path: str, command: tuple[str, ...]) -> bool:
        """Return True if a file has the facts of this command. Facts that cannot be used are removed."""
        from convert_tf2npu.api import UsageError, read_facts

        try:
            known = read_facts(path)
        except UsageError as error:
            self.report(f"observing again: {error}")
            os.remove(path)
            return False
        source = whole_file.read_if_readable(self.script) or b""
        is_here = known.facts_of_file(self.script, source) is not None
        return is_here and any(run.command == command and self._is_long_enough(run) for run in known.runs)

    def _run_observation(self, path: str, command: tuple[str, ...], log: str) -> int:
        """Return the exit code of a process that observes the script.

        Args:
            path: receives the facts.
            command: the script or module, and its arguments.
            log: receives the output.
        Raises:
            NotObserved: it took longer than the timeout.
        """
        from convert_tf2npu.api import rule_options

        steps = [f"--steps={self.steps}"] if self.steps else []
        options = ["--take-back", "-o", path, *steps, *rule_options(self.rules)]
        options += [f"--project={self.project}"] if self.project else []
        target = ["-m", *command] if self.module else command
        arguments = [sys.executable, "-m", "npu_shim", "observe", *options, *target]
        own = os.path.join(os.path.abspath(self.reports), "tmp")  # where the process keeps copies of the user's files
        os.makedirs(own, exist_ok=True)
        display = Display(self.display) if self.display else None
        environ = {**with_package_path(host_env.process_environ()), "TMPDIR": own}
        if display is not None:
            environ[PIPE_VARIABLE] = str(display.pipe)
        with open(log, "wb") as output:
            try:
                return subprocess.run(
                    arguments,
                    env=environ,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=self.timeout,
                    pass_fds=(display.pipe,) if display else (),
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                fix = "a greater --timeout" if self.steps else "--steps, or a greater --timeout"
                raise NotObserved(
                    f"{self.script} took longer than {self.timeout:g} s; its output is in {log}. Give {fix}."
                )
            finally:  # it may have been killed
                if display is not None:
                    display.end()
                for store in leftover_stores(own):
                    restore_files(store)
                shutil.rmtree(own, ignore_errors=True)

    def _is_long_enough(self, run: ObservedRun) -> bool:
        """Return True if an observed run was as long as that which is wanted."""
        return run.ended == "returned" or (
            run.ended == "stopped" and self.steps is not None and run.steps >= self.steps
        )

    def _rules_with_facts(self, facts: str, rules_without_facts: Sequence[str]) -> argparse.Namespace:
        given = tuple(self.rules.no_facts_for or ())
        return argparse.Namespace(
            **{**vars(self.rules), "facts": facts, "no_facts_for": (*given, *rules_without_facts)}
        )

    def _verification_plan(self, rules: argparse.Namespace, name: str, program: Program) -> Plan:
        folder = os.path.join(self.reports, name)
        return Plan(
            self.script,
            folder,
            rules,
            self.arguments,
            steps=self.steps,
            timeout=self.timeout,
            display=self.display,
            module=self.module,
            project=program.root,
            files=program.paths,
        )

    def _verify(self, rules: argparse.Namespace, program: Program) -> Result:
        migrated = os.path.join(self.output, program.script)
        plan = replace(self._verification_plan(rules, VERIFY, program), migrated=migrated, output=self.output)
        return plan.verify(self.report)

    def _program_agrees(self, rules: argparse.Namespace, program: Program) -> bool:
        """Return True if the program agrees with these rules. It is converted in memory."""
        return self._verification_plan(rules, BISECTION, program).verify(self.report).verdict == AGREE


def _note_about_files(outside: Sequence[str], root: str) -> str:
    """Return the note about the files, by path relative to the root, that were not converted."""
    paths = [os.path.join(root, path) for path in outside]
    folder = os.path.commonpath([os.path.realpath(path) for path in (root, *paths)])
    return _OUTSIDE.format(paths_text([os.path.relpath(path) for path in paths]), os.path.relpath(folder))
