"""Start to watch this process."""

from __future__ import annotations

import atexit
import os

from npu_shim.distributed.world import world
from npu_shim.import_hook.after_tensorflow import after_tensorflow
from npu_shim.rehearsal.event_file import EventFile
from npu_shim.rehearsal.progress.progress import Progress
from npu_shim.rehearsal.progress.reporter import Reporter
from npu_shim.rehearsal.progress.waits import Waits


def watch_and_report(pipe: int | None, folder: str | None) -> None:
    """Watch this process, and report until it ends.

    Args:
        pipe: file descriptor to which the status goes; None without a display.
        folder: the event file goes to its folder ``rank_0``, ``rank_1`` ...; None without one.
    """
    rank = world().rank
    events = None if folder is None else EventFile(os.path.join(folder, f"rank_{rank}"))
    write = None if events is None else lambda tag, value, step: events.write_scalars({tag: value}, step)
    progress, waits = Progress(write), Waits()
    reporter = Reporter(rank, progress, waits, pipe, write)

    def watch() -> None:
        from npu_shim._tensorflow import script_frames
        from npu_shim.rehearsal.progress import progress_hooks

        progress_hooks.install_progress_hooks(progress)
        waits.watch_collectives()
        reporter.place = script_frames.main_thread_line_text

    def end() -> None:
        reporter.end()
        if events is not None:
            events.close()

    atexit.register(end)
    after_tensorflow(watch)
