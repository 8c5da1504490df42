"""Run a script in a process of its own and record it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, fields
from typing import Iterator, Sequence

from npu_shim._host import host_device, host_env
from npu_shim._host.process_settings import encode_settings
from npu_shim.import_hook.tool import package_root
from npu_shim.launching.fork_server import ForkServer
from npu_shim.rehearsal.dumping import Dumping
from npu_shim.rehearsal.files.kept import STORE, restore_files
from npu_shim.rehearsal.half_run import HalfRun
from npu_shim.rehearsal.recording.settings import Changes, Race, WholeTensors
from npu_shim.rehearsal.run_arguments import arguments_of_run

PROCESS = "npu_shim.rehearsal.recorded_run"  # the module that runs a script and records it
DEFAULTS = {  # what a user sets has precedence
    "NPU_SHIM_KERNELS": "plain",  # the dropout masks of the script before its migration
    "NPU_SHIM_FALLBACK": "silent",
    "PYTHONHASHSEED": "0",
    "TF_DETERMINISTIC_OPS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "PYTHONUNBUFFERED": "1",
}
_ON_HOST = {host_env.ON_HOST_VARIABLE: "1", "NPU_SHIM_FALLBACK": "silent"}
_OF_HOST = ("TF_DETERMINISTIC_OPS",)  # not set on a device, where a recording changes nothing that TensorFlow runs
TIMED_OUT = 124  # the exit code of a run that took longer than its timeout
FILES = "files"  # the folder of a run for its own files


def _default_environment(on_host: bool) -> dict[str, str]:
    is_npu = host_device.detect_without_import().is_npu and not on_host
    return {name: value for name, value in DEFAULTS.items() if not (is_npu and name in _OF_HOST)}


def is_outside(path: str, folder: str = ".") -> bool:
    """Return True for a path outside of a folder."""
    return os.path.relpath(path, folder).startswith(os.pardir)


def folder_to_copy(project: str | None) -> str:
    """Return the folder of which a run gets a copy: that of a project around the current folder, or the current one."""
    return "." if project is None or is_outside(".", project) else project


@dataclass(frozen=True)
class Run:
    """A script to run.

    Attributes:
        name: ``original`` or ``migrated``.
        script: its path.
        arguments: its arguments; ``{run}`` in them is a folder of this run, ``{seed}`` its seed.
        folder: receives the recording and the log.
        convert: the options of the rules to convert it in memory, or None to run it as it is.
        seed: of Python, NumPy and the ops without a seed.
        by_call_site: True to derive the seeds of ops from their call sites.
        every: record gradients and variables at each n-th step.
        ranks: number of processes; None for one without ``npu-shim launch``.
        timeout: seconds that it may take; None for no limit.
        copy_without: None to run it in the current folder. Else it runs in a copy of that folder, or of the project,
            made without ``.git`` and this folder, and removed after the run.
        half: half precision; None without half precision.
        keep: kind, name and number of a value whose elements are written to KEPT, after which the script ends; None to
            run it to its end.
        until: the last step, after which the script ends; None to run it to its end.
        steps: the number of training steps after which the script ends, 0 to end it before the first one; None to run
            it to its own end.
        deliberate: the deliberate changes; None to note and make none.
        whole: tensors that are written as they are, for recording.writer; None for digests only.
        initial: the folder of a recording whose initial variables are loaded; "" to record those of the script; None
            for neither.
        of_ranks: True to record how ranks work together, or what they are compared with.
        ordered: the races of the script in which reads come before the update; None to order none.
        dumping: the dumps of its ops; None without.
        on_host: True to leave the devices of this machine alone.
        server: the process that it is forked from; None to start it as a new Python.
        apart: None to draw equal numbers on all ranks where the script sets no seed. Else ranks draw their own, unless
            the script sets one of these global seeds.
        display: the command whose lines show its progress; None to show none.
        module: the name by which Python runs the script as a module; None for a script.
        project: the folder of the project; None for that of the script.
        moved_to: the folder with the migrated files of the project; None if the script imports those of the project.
    """

    name: str
    script: str
    arguments: Sequence[str]
    folder: str
    convert: Sequence[str] | None = None
    seed: int = 1
    by_call_site: bool = True
    every: int = 1
    ranks: int | None = None
    timeout: float | None = None
    copy_without: str | None = None
    half: HalfRun | None = None
    keep: tuple[str, str, int] | None = None
    until: int | None = None
    steps: int | None = None
    deliberate: Changes | None = None
    whole: WholeTensors | None = None
    initial: str | None = None
    of_ranks: bool = False
    apart: Sequence[str] | None = None
    ordered: Sequence[Race] | None = None
    dumping: Dumping | None = None
    on_host: bool = False
    server: ForkServer | None = None
    display: str | None = None
    module: str | None = None
    project: str | None = None
    moved_to: str | None = None

    @property
    def log_path(self) -> str:
        """Path of the file with the output of the script."""
        return os.path.join(self.folder, "output.log")

    @property
    def _kept_files_folder(self) -> str:
        """Folder with copies of the files that the script changes."""
        return os.path.abspath(os.path.join(self.folder, STORE))

    @property
    def can_repeat(self) -> bool:
        """False for the recording of a run elsewhere that has no second run."""
        return True

    @property
    def run_text(self) -> str:
        """Text about run_script() for the progress."""
        return f"running the {self.name} script" + (", with reads before updates" if self.ordered else "")

    def recording_folders(self) -> list[str]:
        """Return the folder of each rank's recording."""
        if self.ranks is None:
            return [self.folder]
        return [os.path.join(self.folder, f"rank_{rank}") for rank in range(self.ranks)]

    def settings_text(self) -> str:
        """Return what the process needs to know, as text."""
        values = {setting.name: getattr(self, setting.name) for setting in fields(Run)}
        return encode_settings(Run(**{**values, "folder": os.path.abspath(self.folder), "server": None}))

    def command(self) -> list[str]:
        """Return program and arguments of the process."""
        files = os.path.abspath(os.path.join(self.folder, FILES))
        arguments = arguments_of_run(self.arguments, files, self.seed)
        launch: list[str] = []
        if self.ranks is not None:
            logs = os.path.abspath(os.path.join(self.folder, "logs"))
            launch = ["npu_shim", "launch", "--ranks", str(self.ranks), "--log-dir", logs, "-m"]
        return [sys.executable, "-m", *launch, PROCESS, self.settings_text(), self.script, *arguments]

    def run_script(self) -> int:
        """Run the script to its end. It sees no file that an earlier run wrote, and leaves none outside its folder.

        Returns:
            The exit code; TIMED_OUT after the timeout; -N if signal N ended it.
        Raises:
            OSError: a file that the script changed cannot be restored.
        """
        from npu_shim.rehearsal.progress.recording_progress import (
            showing_progress,  # needs NumPy, which the list of commands does not
        )
        from npu_shim.rehearsal.recording.writer import FILE, KEPT

        for folder in (FILES, "tmp"):
            path = os.path.join(self.folder, folder)
            shutil.rmtree(path, ignore_errors=True)
            os.makedirs(path)
        for path in (os.path.join(folder, name) for folder in self.recording_folders() for name in (FILE, KEPT)):
            if os.path.exists(path):
                os.remove(path)
        steps = self.steps if self.until is None else self.until
        with showing_progress(
            self.display, self.name, self.recording_folders(), steps
        ) as end, self._working_folder() as directory:
            try:
                code = self._run_process(directory)
            finally:
                restore_files(self._kept_files_folder)
            end(code)
        return code

    def environment(self) -> dict[str, str]:
        """Return the environment variables of the process."""
        environment = {
            **_default_environment(self.on_host),
            **host_env.process_environ(),
            **(_ON_HOST if self.on_host else {}),
            "TMPDIR": os.path.abspath(f"{self.folder}/tmp"),
        }
        if package_root() not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
            paths = [environment.get("PYTHONPATH", ""), package_root()]
            environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        return environment

    def _run_process(self, directory: str) -> int:
        with open(self.log_path, "wb") as log:
            try:
                if self.server is not None:
                    command, environ = self.command()[1:], self.environment()
                    return self.server.fork("this run", command, self.log_path, environ, directory).finish(self.timeout)
                return subprocess.run(
                    self.command(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=self.environment(),
                    cwd=directory,
                    timeout=self.timeout,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                return TIMED_OUT

    @contextlib.contextmanager
    def _working_folder(self) -> Iterator[str]:
        """Return the current folder of the script."""
        if self.copy_without is None:
            yield "."
            return
        outside = os.path.realpath(self.copy_without)

        def ignored(folder: str, names: list[str]) -> list[str]:
            return [name for name in names if name == ".git" or os.path.realpath(os.path.join(folder, name)) == outside]

        copy, source = os.path.join(self.folder, "copy"), folder_to_copy(self.project)
        shutil.copytree(source, copy, symlinks=True, ignore=ignored)
        try:
            yield os.path.join(copy, os.path.relpath(".", source))
        finally:
            shutil.rmtree(copy, ignore_errors=True)
