"""Plan a verification: the runs, what each records, and what they are compared with."""

from __future__ import annotations

import argparse
import os
import shlex
from dataclasses import dataclass, replace
from typing import Callable, Sequence

from npu_shim._host import host_device
from npu_shim._host.packages import tensorflow_version
from npu_shim.import_hook import migrated_run
from npu_shim.rehearsal import (
    deliberate_changes,
    portable,
    preloaded_runs,
    recorded_original,
    verifying,
    verifying_half,
)
from npu_shim.rehearsal.comparing import ELSEWHERE, TOLERANCE
from npu_shim.rehearsal.comparing.half_band import RUNS
from npu_shim.rehearsal.dumping import Dumping
from npu_shim.rehearsal.half_run import Precision
from npu_shim.rehearsal.recording.kinds import FINAL, INITIAL
from npu_shim.rehearsal.recording.settings import Changes, WholeTensors
from npu_shim.rehearsal.result import Result
from npu_shim.rehearsal.run_arguments import FIRST_SEED
from npu_shim.rehearsal.running import Run, folder_to_copy, is_outside

# Rules about the data of ranks and the averaging of gradients.
_RANK_CODES = ("NPU252", "NPU303", "NPU304", "NPU305", "NPU307", "NPU308", "NPU309")


@dataclass(frozen=True)
class Plan:
    """The settings of a verification.

    Attributes:
        original: the path of the script; against a recording, of the migrated one.
        folder: receives the runs.
        rules: the arguments of the rules.
        arguments: of both scripts.
        migrated: the path of the migrated script; None to convert the original in memory.
        original_arguments, migrated_arguments: of one script only, after the common ones, as for a shell.
        tolerance: relative, for float32 at the first step; None for the default.
        seed, seeds: the first one, and the number of pairs of runs; None for one pair with equal random numbers.
        every: record gradients and variables at each n-th step.
        steps, predicts: the number of training steps; True to end before the first one.
        ranks: of the migrated script; None for one process.
        timeout: seconds that a run may take.
        copies: True to run each script in its own copy of the current folder.
        is_strict: True to compare with the untouched original.
        half: the precision of the migrated script; None for float32.
        perturbed: number of perturbed runs; None for the default.
        record: the folder that receives a recording of the original; None for none.
        tensors, most_bytes: the steps whose tensors a recording has as they are, and the bytes that it may take.
        begins_as_recorded: True to begin with the variables of a recording.
        dumping: the dumps of the ops; None without.
        display: the command whose lines show the progress of the runs; None to show none.
        module: the name by which Python runs both scripts as modules; None for scripts.
        project: the folder of the project of the original; None for that of the script.
        files: of the project, which the original may import besides those that its import statements show.
        output: the folder of the migrated project; None if it is that of the migrated script.
    """

    original: str
    folder: str
    rules: argparse.Namespace
    arguments: Sequence[str] = ()
    migrated: str | None = None
    original_arguments: str = ""
    migrated_arguments: str = ""
    tolerance: float | None = None
    seed: int = FIRST_SEED
    seeds: int | None = None
    every: int = 1
    steps: int | None = None
    predicts: bool = False
    ranks: int | None = None
    timeout: float | None = None
    copies: bool = False
    is_strict: bool = False
    half: Precision | None = None
    perturbed: int | None = None
    record: str | None = None
    tensors: Sequence[int] = ()
    most_bytes: float = 1e9
    begins_as_recorded: bool = False
    dumping: Dumping | None = None
    display: str | None = None
    module: str | None = None
    project: str | None = None
    files: Sequence[str] = ()
    output: str | None = None

    def verify(self, report: Callable[[str], None]) -> Result:
        """Run both scripts, and write a recording if one is asked for. Return the result of their comparison."""
        settings, runs = self._comparison_settings(), self.perturbed or RUNS
        half = verifying_half.Half(self.half, runs) if self.half else None
        with preloaded_runs.preloaded(self._make_original_and_migrated_run()) as (original, migrated):
            if self.record:
                return recorded_original.record_original(self.record, original, migrated, settings, half, runs, report)
            if half:
                return verifying_half.verify_half(original, migrated, settings, half, report)
            return verifying.verify(original, migrated, settings, report)

    def verify_against(self, folder: str, report: Callable[[str], None]) -> Result:
        """Run the migrated script, and return the result of its comparison with the recording in a folder.

        Raises:
            portable.RecordingError: the folder has none.
        """
        reference, is_npu = portable.load_recording(folder), host_device.detect_without_import().is_npu
        tolerance = self.tolerance or tolerance_against(reference, is_npu)
        settings = replace(self._comparison_settings(), tolerance=tolerance)
        return recorded_original.verify_against(reference, self.run_against(reference), settings, report, is_npu)

    def run_against(self, reference: portable.Recorded) -> Run:
        """Return the run of the migrated script that is compared with a recording."""
        is_original = portable.digest_of(self.original) == reference.manifest.script_sha256
        dumping, steps = self.dumping, reference.steps
        if dumping is not None and dumping.folder:  # both sides compute the same step
            dumping = dumping.with_seed(reference.seed)
            if reference.manifest.half is None:  # a band needs all steps
                steps = min((number for number in (steps, dumping.last_step) if number is not None), default=None)
        return Run(
            "migrated",
            self._script_path(self.original),
            self.arguments or reference.arguments,
            self._make_subfolder("migrated"),
            convert=self._rule_options() if is_original else None,
            seed=reference.seed,
            every=reference.every,
            ranks=self.ranks,
            timeout=self.timeout,
            copy_without=self.folder if self.copies else None,
            steps=steps,
            deliberate=Changes(),
            initial=reference.folder if self.begins_as_recorded else "",
            of_ranks=bool(self.ranks),
            dumping=dumping,
            display=self.display,
        )

    def _make_original_and_migrated_run(self) -> tuple[Run, Run]:
        last_step = self.dumping.last_step if self.dumping is not None else None
        original = Run(
            "original",
            self._script_path(self.original),
            [*self.arguments, *shlex.split(self.original_arguments)],
            self._make_subfolder("original"),
            convert=self._rule_options() if self.half and not self.migrated else None,
            seed=self.seed,
            by_call_site=not self.seeds,
            every=self.every,
            timeout=self.timeout,
            copy_without=self.folder if self.copies else None,
            steps=0 if self.predicts else self.steps or last_step,
            deliberate=self._deliberate_places(),
            whole=WholeTensors(self.tensors, (INITIAL, FINAL), self.most_bytes) if self.record else None,
            initial="" if self.record else None,
            of_ranks=bool(self.ranks or self.record),
            dumping=self.dumping,
            display=self.display,
            module=self.module,
            project=self._script_path(self.project) if self.project else None,
        )
        migrated = replace(
            original,
            name="migrated",
            script=self._script_path(self.migrated or self.original),
            arguments=[*self.arguments, *shlex.split(self.migrated_arguments)],
            folder=self._make_subfolder("migrated"),
            convert=None if self.migrated else self._rule_options(),
            ranks=self.ranks,
            moved_to=os.path.abspath(self.output) if self.output else None,
            whole=None,
            dumping=None if self.dumping is not None and self.dumping.folder else self.dumping,
        )
        return original, migrated

    def _comparison_settings(self) -> verifying.Settings:
        return verifying.Settings(self.tolerance or TOLERANCE, self.seeds, places=self._findings_about_ranks)

    def _make_subfolder(self, name: str) -> str:
        own = os.path.join(self.folder, name)
        os.makedirs(own, exist_ok=True)
        return own

    def _script_path(self, path: str) -> str:
        is_copied = self.copies and not is_outside(path, folder_to_copy(self.project))
        return os.path.relpath(path) if is_copied else os.path.abspath(path)

    def _deliberate_places(self) -> Changes | None:
        """Return the places of deliberate changes in the original; None if both are of one script or untouched."""
        if self.is_strict or (self.half and not self.migrated):
            return None
        return Changes(
            deliberate_changes.deliberate_places(
                migrated_run.make_conversions([*self.files, self.original], self.rules, self.project).convert_all()
            )
        )

    def _findings_about_ranks(self) -> list[str]:
        """Return code and place of each finding about ranks in the migrated script, or in the original without one."""
        rules = self.rules
        if self.migrated and not rules.distributed:  # the mode in which the tool converts what is not made for ranks
            rules = argparse.Namespace(**{**vars(rules), "distributed": "tf_strategy"})
        script, root = (self.migrated, self.output) if self.migrated else (self.original, self.project)
        return [
            f"{finding.code}, {os.path.relpath(path)}:{finding.line}"
            for path, result in migrated_run.make_conversions([script], rules, root).convert_all()
            for finding in result.findings
            if finding.code in _RANK_CODES
        ]

    def _rule_options(self) -> list[str]:
        from convert_tf2npu.api import rule_options

        return [*rule_options(self.rules)]


def tolerance_against(reference: portable.Recorded, is_npu: bool) -> float:
    """Return the tolerance against a recording, which another version or device may have made."""
    is_same = reference.manifest.environment.get("tensorflow") == (tensorflow_version() or "") and not is_npu
    return TOLERANCE if is_same else ELSEWHERE
