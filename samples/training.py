"""Runs training scripts and reads the losses and the accuracy they print."""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import threading
import time
from typing import NamedTuple, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOSS_LINE = re.compile(r'\bstep (\d+) loss (\S+)')
ACCURACY_LINE = re.compile(r'^accuracy (\S+)', re.M)


class Run(NamedTuple):
    """The values that one training run printed."""
    losses: dict[int, float]  # by step
    accuracy: float
    seconds: float
    output: str

    @property
    def final_loss(self) -> float:
        return self.losses[max(self.losses)]


class SampleError(Exception):
    """A step which did not work; the text says what, where and what to look at."""


def parse(output: str, seconds: float = 0.0) -> Run:
    """Reads losses and accuracy from what a sample printed.

    Raises:
        SampleError: there is no loss line or no accuracy line.
    """
    # A dict, because absl and TensorFlow may each print the same log line.
    losses = {int(step): float(loss) for step, loss in LOSS_LINE.findall(output)}
    accuracy = ACCURACY_LINE.findall(output)
    if not losses or not accuracy:
        raise SampleError('the output has %d lines "step N loss X" and %d lines "accuracy X"; '
                          'at least one of each is needed' % (len(losses), len(accuracy)))
    return Run(losses, float(accuracy[-1]), seconds, output)


def environment() -> dict[str, str]:
    """The environment of a run: this checkout first, one process, quiet TensorFlow."""
    env = {name: value for name, value in os.environ.items()
           if name not in ('RANK_ID', 'RANK_SIZE', 'RANK_TABLE_FILE')}
    path = [str(ROOT)] + [p for p in [env.get('PYTHONPATH')] if p]
    env.update(PYTHONPATH=os.pathsep.join(path), PYTHONUNBUFFERED='1')
    env.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
    env.setdefault('CUDA_VISIBLE_DEVICES', '')
    return env


class Training:
    """A script which trains in a process of its own; its output goes to a log file too."""

    def __init__(self, script: pathlib.Path, flags: Sequence[str], log: pathlib.Path) -> None:
        self._script, self._flags, self._log = script, list(flags), log
        self.last_step = 'starting'  # what it said of itself last, for the terminal
        self._lines: list[str] = []
        self._begin = time.time()
        self._seconds = 0.0
        log.parent.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, str(script), *flags], cwd=str(log.parent), env=environment(),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            universal_newlines=True, encoding='utf-8', errors='replace')
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with open(self._log, 'w', encoding='utf-8') as log_file:
            for line in self._process.stdout:
                self._lines.append(line)
                log_file.write(line)
                match = LOSS_LINE.search(line)
                if match:
                    self.last_step = 'step %s loss %.8s' % match.groups()
        self._process.wait()
        self._seconds = time.time() - self._begin

    def running(self) -> bool:
        return self._reader.is_alive()

    def failed(self) -> bool:
        return not self.running() and self._process.returncode != 0

    def stop(self) -> None:
        """Ends the process, if it still runs."""
        self._process.kill()
        self._reader.join()

    def result(self) -> Run:
        """Waits for the end.

        Raises:
            SampleError: the script failed, or printed no losses or no accuracy.
        """
        self._reader.join()
        try:
            if self._process.returncode != 0:
                raise SampleError('it ended with code %d' % self._process.returncode)
            return parse(''.join(self._lines), self._seconds)
        except SampleError as error:
            raise SampleError('%s %s: %s\nThe last lines of its log, %s:\n\n%s' % (
                self._script, ' '.join(self._flags), error, self._log,
                ''.join('    ' + line for line in self._lines[-25:]))) from None


def train_side_by_side(original: Training, migrated: Training, title: str) -> tuple[Run, Run]:
    """Waits for both and shows how far they are: live on a terminal, else at the end.

    Raises:
        SampleError: one of them failed; the other is ended.
    """
    def show(first: str, second: str, end: str) -> None:
        line = '  %-17s  original %-24s  migrated %-24s' % (title, first, second)
        print(('\r' if sys.stdout.isatty() else '') + line, end=end, flush=True)

    both = (original, migrated)
    try:
        while any(training.running() for training in both):
            for training in both:
                if training.failed():
                    training.result()  # raises; no need to wait for the other
            if sys.stdout.isatty():
                show(original.last_step, migrated.last_step, '')
            time.sleep(0.1)
        runs = original.result(), migrated.result()
    except BaseException as error:
        for training in both:
            training.stop()
        show(original.last_step, migrated.last_step, '\n')
        raise error
    first, second = ('loss %.6f, acc %.4f' % (run.final_loss, run.accuracy) for run in runs)
    show(first, second, '\n')
    return runs
