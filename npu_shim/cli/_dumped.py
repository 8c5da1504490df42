"""The options of ``npu-shim run`` and ``verify`` that dump what each op computes, and change how a card computes it."""

from __future__ import annotations

import argparse
import atexit
import json
import os
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from npu_shim._host import host_device, host_env
from npu_shim.cli._paths import unwritable_folder
from npu_shim.import_hook.after_tensorflow import after_tensorflow

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import OptionValue
    from npu_shim.rehearsal.recording.recorder import Recorder

GRAPHS = "graphs"
_ALL_OFF = {"Switch": {"GraphFusion": {"ALL": "off"}, "UBFusion": {"ALL": "off"}}}
_MOST_STEPS = 100  # that the NPU takes
_FEW_BYTES = 20e9
_SEED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options to a parser."""
    group = parser.add_argument_group("dumps and precision on an NPU")
    group.add_argument(
        "--dump",
        metavar="DIR",
        help="write what each op computes to DIR and end the script after the last dumped step; on an NPU the engine's "
        "dumps and graphs, on the CPU a file for each output (docs/accuracy.md)",
    )
    group.add_argument(
        "--dump-steps",
        type=steps,
        metavar="STEPS",
        help="with --dump: the training steps, from 0, as in --dump-steps 0,5,10-12; by default 0",
    )
    group.add_argument(
        "--dump-overflow",
        action="store_true",
        help="with --dump: on an NPU, dump only where numbers overflow, at every step",
    )
    group.add_argument(
        "--dump-layers",
        type=lambda text: text.replace(",", " ").split(),
        metavar="NAMES",
        help="with --dump: these ops only, as in --dump-layers dense/MatMul,loss; by default all",
    )
    group.add_argument("--fusion", choices=("off",), help="switch the fusion of ops off on an NPU")
    group.add_argument(
        "--precision", metavar="MODE", help="the option precision_mode for all sessions of the script on an NPU"
    )


def problem(args: argparse.Namespace) -> str | None:
    """Return why the options cannot be used, None if they can."""
    for name in ("dump_steps", "dump_overflow", "dump_layers"):
        if getattr(args, name) and not args.dump:
            return f"--{name.replace('_', '-')} needs --dump. Add it."
    if args.dump_overflow and args.dump_steps:
        return "--dump-overflow looks at every step, so it excludes --dump-steps. Give one of the two."
    if args.dump_overflow and not host_device.look().is_npu:
        return "--dump-overflow needs an NPU. On the CPU, npu-shim run --numerics DIR names the op that overflows."
    wrong = unwritable_folder("--dump", args.dump, empty=True)
    if wrong:
        return wrong
    if args.precision:
        from npu_shim.options.check import check_session_options

        try:
            check_session_options({"precision_mode": args.precision})
        except ValueError as error:
            return str(error)
    return None


def settings(args: argparse.Namespace, deterministic: bool) -> dict[str, Any] | None:
    """Return what start() needs, None if nothing of it is asked for."""
    if not (args.dump or args.fusion or args.precision or deterministic):
        return None
    return {
        "folder": args.dump and os.path.abspath(args.dump),
        "steps": [] if args.dump_overflow or not args.dump else args.dump_steps or [0],
        "layers": args.dump_layers or [],
        "overflow": args.dump_overflow,
        "fusion": args.fusion,
        "precision": args.precision,
        "deterministic": deterministic,
        "draws": None,
    }


def last_step(given: dict[str, Any] | None) -> int | None:
    """Return the number of steps after which the script ends, None for its own end."""
    return max(given["steps"]) + 1 if given and given["steps"] else None


def missing(given: dict[str, Any] | None) -> str | None:
    """Return why a run on the CPU has dumped nothing for a step or an op; None if it has.

    Args:
        given: of settings().
    """
    if not given or not given["folder"] or host_device.look().is_npu:
        return None
    from npu_shim.dumps.files import flat

    paths = [os.path.join(of_rank(given["folder"]), str(step)) for step in given["steps"]]
    names = [[name for name in _names(path) if name.endswith(".npy")] for path in paths]
    empty = [str(step) for step, found in zip(given["steps"], names) if not found]
    if empty and (len(empty) < len(names) or not given["layers"]):
        return f"nothing was dumped at step {', '.join(empty)}: the script ends before. Give earlier --dump-steps."
    for layer in given["layers"]:
        if not any(name.startswith(f"{flat(layer)}.") for found in names for name in found):
            numbers = ", ".join(map(str, given["steps"]))
            return f"no op {layer!r} ran at step {numbers}. Dump without --dump-layers to see the names."
    return None


def _names(folder: str) -> list[str]:
    """Return the names of the files in the folder of a step; those of the mapping for long ones."""
    from npu_shim.dumps.files import mapping

    return [*os.listdir(folder), *mapping(folder, {}).values()] if os.path.isdir(folder) else []


def start_alone(given: dict[str, Any]) -> None:
    """Begin in a process that is not recorded, and end its script after the last step. See start()."""
    if not given["folder"]:
        start(given, None)
    else:
        from npu_shim.rehearsal.recording import random_seeds
        from npu_shim.rehearsal.recording.install import install_hooks
        from npu_shim.rehearsal.recording.recorder import Recorder
        from npu_shim.rehearsal.recording.writer import NoWriter

        recorder = Recorder(NoWriter(), limit=last_step(given))
        recorder.ends_after_training = True
        random_seeds.seed_python(_SEED, recorder.seed)
        start(given, recorder)
        install_hooks(recorder, _SEED, True)


def start(given: dict[str, Any], recorder: Recorder | None) -> None:
    """Begin, as soon as the script has imported TensorFlow. Call it before the hooks of a recording are installed.

    Args:
        given: of settings().
        recorder: counts the steps; None without --dump.
    """
    folder = given["folder"]
    if folder:
        folder = of_rank(folder)
        os.makedirs(folder, exist_ok=True)
        if os.listdir(folder):  # an earlier run of the same command has dumped
            folder = None
        else:
            _report(folder, given["steps"])
    if host_device.look().is_npu:
        if folder:
            host_env.process_environ().update(_graph_variables(os.path.join(folder, GRAPHS)))
        options = _options(given, folder)

        def note(found: dict[str, Any]) -> None:
            if recorder is not None:
                recorder.writer.event("note", npu_options=found)

        def share() -> None:
            from npu_shim.dumps.draws import SharedDraws

            assert recorder is not None
            SharedDraws(recorder, folder).start(given["draws"])

        def give() -> None:
            from npu_shim.config import given_options

            given_options.give(options, note)

        after_tensorflow(give)
        if given["draws"] is not None and recorder is not None:
            after_tensorflow(share)
    elif folder and recorder is not None:

        def begin() -> None:
            from npu_shim.dumps.collect import Dump

            Dump(folder, given["steps"], recorder, given["layers"]).start()

        after_tensorflow(begin)


def _options(given: dict[str, Any], folder: str | None) -> dict[str, OptionValue]:
    """Return the NPU options."""
    found: dict[str, OptionValue] = {}
    if folder:
        found = {"enable_dump": not given["overflow"], "enable_dump_debug": given["overflow"], "dump_path": folder}
        if given["overflow"]:
            found["dump_debug_mode"] = "all"
        else:
            found.update(dump_step="|".join(map(str, given["steps"])), dump_mode="all")
        found["dump_layer"] = " ".join(given["layers"] or [])  # all without one, whatever the script asks for
    if given["fusion"]:
        found["fusion_switch_file"] = _all_off(folder)
    if given["precision"]:
        found["precision_mode"] = given["precision"]
    if given["deterministic"]:
        found["deterministic"] = 1
    return found


def _graph_variables(folder: str) -> dict[str, str]:
    """Return the variables with which the engine writes its graphs: without weights, before and after compilation."""
    os.makedirs(folder, exist_ok=True)
    return {"DUMP_GE_GRAPH": "2", "DUMP_GRAPH_LEVEL": "1", "DUMP_GRAPH_PATH": folder}


def _all_off(folder: str | None) -> str:
    """Write the file that switches all fusions off. Return its path."""
    if folder is None:
        folder = tempfile.mkdtemp(prefix="npu_shim_fusion_")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "fusion_switch.json")
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(_ALL_OFF, stream, indent=2)
    return path


def _report(folder: str, steps: list[int]) -> None:
    free = shutil.disk_usage(folder).free
    what = f"the outputs of all ops at step {', '.join(map(str, steps))}" if steps else "ops that overflow"
    few = ". They may take more: dump fewer steps, or give a folder on another disk" if free < _FEW_BYTES else ""
    print(f"npu_shim: dumps {what} to {folder}, where {free / 1e9:.0f} GB are free{few}", file=sys.stderr, flush=True)


def of_rank(folder: str) -> str:
    """Return the folder of this rank in a folder of a job."""
    from npu_shim.distributed.ranks import world

    ranks = world()
    return os.path.join(folder, f"rank_{ranks.rank}") if ranks.size > 1 else folder


def steps(text: str) -> list[int]:
    """Return the numbers of steps in an argument, such as 0,5,10-12."""
    found: set[int] = set()
    for part in text.replace("|", ",").split(","):
        first, _, last = part.strip().partition("-")
        try:
            numbers = range(int(first), int(last or first) + 1)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text} is not allowed: give steps from 0, like 5 or 10-12") from None
        found.update(numbers[: _MOST_STEPS + 1])  # one more is too many
    if not found or len(found) > _MOST_STEPS:
        raise argparse.ArgumentTypeError(f"{text} is not allowed: give 1 to {_MOST_STEPS} steps, like 5 or 10-12")
    return sorted(found)
