"""The process of a recorded run: ``python -m npu_shim.cli._recorded SETTINGS script ARGS``."""

from __future__ import annotations

import importlib
import json
import os
import platform
import resource
import sys
from typing import Any

from npu_shim._host import host_device, host_env
from npu_shim.cli import _dumped, run
from npu_shim.import_hook import script
from npu_shim.import_hook.after_tensorflow import after_tensorflow
from npu_shim.rehearsal.comparing.recording import initial_variables
from npu_shim.rehearsal.files.kept import STORE, Kept
from npu_shim.rehearsal.files.watch import Watch
from npu_shim.rehearsal.recording import random_seeds
from npu_shim.rehearsal.recording.install import install_hooks
from npu_shim.rehearsal.recording.random_seeds import Apart
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.writer import Writer


def main(arguments: list[str]) -> int:
    """Run a script and record it.

    Args:
        arguments: attributes of running.Run as JSON, the script, and its arguments.
    Returns:
        0 if the script returns. Its exceptions, including SystemExit, go on to the caller.
    """
    settings: dict[str, Any] = json.loads(arguments[0])
    target = arguments[1:]
    folder = settings["folder"]
    if settings.get("on_host"):
        host_device.DEVICE_FILES = ""
        host_env.process_environ()["NPU_SHIM_FALLBACK"] = "silent"
    rank = _rank() if settings["ranks"] else None
    if rank is not None:
        folder = os.path.join(folder, f"rank_{rank}")
    os.makedirs(folder, exist_ok=True)
    writer = Writer(folder, settings.get("keep"), settings.get("until"), settings.get("whole"))
    writer.event("start", command=target, python=platform.python_version(), rank=rank)
    recorder = Recorder(writer, settings["every"], settings.get("steps"))
    recorder.is_rank, recorder.of_ranks = rank is not None, bool(settings.get("of_ranks"))
    known, initial = settings.get("apart"), settings.get("initial")
    apart = Apart(rank, known) if rank and known is not None else None
    seed = settings["seed"]
    random_seeds.seed_python(apart.seed(seed) if apart else seed, recorder.seed)
    if settings.get("dump"):  # before the hooks, which run sessions of their own between two steps
        _dumped.start(settings["dump"], recorder)
    given = initial_variables(initial) if initial else None
    by_call_site, deliberate = settings["by_call_site"], settings.get("deliberate")
    install_hooks(recorder, seed, by_call_site, deliberate, initial is not None, given, apart)
    begun = _rehearse(settings["half"], writer, folder) if settings.get("half") else []
    ended = "error"
    _watch_files(settings)
    if host_env.alias():
        importlib.import_module("npu_shim.alias")
    try:
        if settings["convert"] is None:
            script.prepare_path(os.path.dirname(os.path.realpath(target[0])))
            script.run_file(target[0], target[1:], None)
        else:
            run.main([*settings["convert"], *target])
        ended = _at_end(recorder, rank)
    except SystemExit as end:
        ended = _at_end(recorder, rank) if end.code in (None, 0) else "error"
        raise
    finally:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        half = begun[0].end() if begun else None
        last = {"peak_bytes": peak, "half": half and half.to_json(), "reduced": recorder.reduced}
        writer.event("end", ended=ended, steps=recorder.steps, seconds=writer.seconds(), **last)
    return 0


def _watch_files(settings: dict[str, Any]) -> None:
    """Note what the script writes, so that the command can take it back. The runs after this one see no file of it."""
    sys.dont_write_bytecode = True
    dump = (settings.get("dump") or {}).get("folder")
    watch = Watch(Kept(os.path.join(settings["folder"], STORE), [settings["folder"], *([dump] if dump else [])]))
    watch.start()
    after_tensorflow(watch.follow_tensorflow)


def _at_end(recorder: Recorder, rank: int | None) -> str:
    """Record what is recorded when a script has returned, but for ranks. Return the word for this end.

    The moving statistics of a rank are those of its share of the data.
    """
    for act in recorder.at_end if rank is None else ():
        act()
    return "returned"


def _rehearse(given: dict[str, Any], writer: Writer, folder: str) -> list[Any]:
    """Begin the part of half precision when TensorFlow is imported. Return a list that has it from then on."""
    begun: list[Any] = []

    def begin() -> None:
        from npu_shim.rehearsal.half.recorded import Rehearsal
        from npu_shim.rehearsal.half_run import HalfRun

        begun.append(Rehearsal(HalfRun.from_json(given), writer, folder))
        begun[0].start()

    after_tensorflow(begin)
    return begun


def _rank() -> int:
    from npu_shim.distributed.ranks import world

    return world().rank


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
