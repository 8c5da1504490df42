"""The options --progress and --tensorboard, and their start."""

from __future__ import annotations

import argparse
import atexit

from npu_shim.cli._values import add_options
from npu_shim.launching.progress.display import Display

_OPTIONS = """
progress:
--progress  show step, steps per second, loss and memory of each rank: a line at the bottom of a terminal, or a line
    every ten seconds in a pipe
--tensorboard DIR  write losses, logs, summaries, fetched scalars, learning rates, speed and memory of each rank to
    DIR/rank_0, DIR/rank_1 ...
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that show a run."""
    add_options(parser, _OPTIONS)


def watch_progress(shows: bool, folder: str | None) -> None:
    """Watch this process: show its progress, and write event files to a folder."""
    display = Display("npu-shim run") if shows else None
    if display is not None:
        atexit.register(display.end)  # after what start() registers
    from npu_shim.rehearsal.progress.start import watch_and_report

    watch_and_report(None if display is None else display.pipe, folder)
