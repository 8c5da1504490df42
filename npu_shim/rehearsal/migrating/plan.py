"""Observe a script, convert it with what was seen, verify it, and take back the rewrites with which it departs."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import Callable, Sequence

from npu_shim._host import host_env
from npu_shim.import_hook.tool import with_package
from npu_shim.rehearsal.migrating.bisection import culprits
from npu_shim.rehearsal.migrating.migration import FACTS, Migration, Observed
from npu_shim.rehearsal.migrating.program import Program, entry, taken_back
from npu_shim.rehearsal.planning import Plan
from npu_shim.rehearsal.result import AGREE, NOT_REPRODUCIBLE, Result

FILE = "facts.json"  # in the folder of the reports
VERIFY, BISECTION = "verify", "bisection"  # folders of runs in it
_LOG = "observe.log"
_LINES_SHOWN = 15
_STOPPED = (
    "Each observed run ended after its steps. The program may use other sizes later, as in an evaluation, and fails "
    "then. Observe a whole run before you train for long."
)


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

    def migrate(self) -> Migration:
        """Migrate the program.

        Raises:
            NotObserved: the original did not run to its end.
            UsageError: the facts cannot be used.
            OutputExists: the output has other files.
        """
        from convert_tf2npu.api import read_facts

        path = self.rules.facts or self._observed_facts()
        facts = read_facts(path)
        rules = self._rules(path, ())
        observed = [os.path.join(facts.root, name) for name in facts.files]
        program = Program(self.script, rules, observed)
        rewrites = program.rewrites()
        program.write(self.output, self.replaces)
        of_facts = list(dict.fromkeys(entry(rewrite) for rewrite in rewrites if rewrite.basis == FACTS))
        count = f"{len(rewrites)} rewrites, {sum(r.basis == FACTS for r in rewrites)} of them rest on observed runs"
        self.report(f"wrote {self.output}: {count}")
        verified = self._verify(rules, self._migrated(program))
        notes, back = [], []
        if of_facts and all(run.ended == "stopped" for run in facts.runs):
            notes.append(_STOPPED)
        if verified.verdict not in (AGREE, NOT_REPRODUCIBLE) and of_facts:
            self.report("looks for the rewrites that make the difference")
            left_out = culprits(of_facts, lambda without: self._agrees(self._rules(path, without)))
            if left_out is None:
                notes.append("The difference does not come from a rewrite that rests on observed runs.")
            else:
                back = taken_back(rewrites, left_out)
                notes += [f"Taken back, because the program computes something else with it: {r.place}." for r in back]
                rules = self._rules(path, left_out)
                program = Program(self.script, rules, observed)
                program.write(self.output, True)
                verified = self._verify(rules, self._migrated(program))
        return Migration(
            self.script,
            list(self.arguments),
            self.output,
            path,
            [Observed(list(run.command), run.tensorflow, run.python, run.steps, run.ended) for run in facts.runs],
            len(program.names),
            program.changed,
            program.rewrites() + back,
            program.left(),
            verified,
            notes,
        )

    def _observed_facts(self) -> str:
        """Return the path of the facts of this command: those of an earlier run of it, or of one that runs now."""
        from convert_tf2npu.api import UsageError, read_facts

        path = os.path.join(self.reports, FILE)
        command = (self.script, *self.arguments)
        if os.path.exists(path):
            try:
                if any(run.command == command and run.ended != "error" for run in read_facts(path).runs):
                    self.report(f"uses the facts in {path}. Remove the file to observe again")
                    return path
            except UsageError as error:
                self.report(f"observes again: {error}")
                os.remove(path)
        self.report(f"observes {self.script}")
        log = os.path.join(self.reports, _LOG)
        options = ["--take-back", "-o", path, *([f"--steps={self.steps}"] if self.steps else [])]
        arguments = [sys.executable, "-m", "npu_shim", "observe", *options, *self._rule_options(), *command]
        with open(log, "wb") as output:
            try:
                code = subprocess.run(
                    arguments,
                    env=with_package(host_env.process_environ()),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=self.timeout,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                raise NotObserved(f"{self.script} took longer than {self.timeout:g} s. Give --steps, or more time.")
        if code:
            with open(log, encoding="utf-8", errors="replace") as output_text:
                last = "".join(output_text.readlines()[-_LINES_SHOWN:]).rstrip()
            raise NotObserved(f"{self.script} ended with exit code {code}; the whole output is in {log}:\n{last}")
        return path

    def _rules(self, facts: str, without: Sequence[str]) -> argparse.Namespace:
        given = tuple(self.rules.no_facts_for or ())
        return argparse.Namespace(**{**vars(self.rules), "facts": facts, "no_facts_for": (*given, *without)})

    def _rule_options(self) -> list[str]:
        from convert_tf2npu.api import rule_options

        return [*rule_options(self.rules)]

    def _migrated(self, program: Program) -> str:
        return os.path.join(self.output, program.script)

    def _plan(self, rules: argparse.Namespace, name: str) -> Plan:
        folder = os.path.join(self.reports, name)
        return Plan(self.script, folder, rules, self.arguments, steps=self.steps, timeout=self.timeout)

    def _verify(self, rules: argparse.Namespace, migrated: str) -> Result:
        plan = replace(self._plan(rules, VERIFY), migrated=migrated)
        return plan.verify(self.report)

    def _agrees(self, rules: argparse.Namespace) -> bool:
        """Return True if the program agrees with these rules. It is converted in memory."""
        return self._plan(rules, BISECTION).verify(self.report).verdict == AGREE
