"""Dump what each op of a script computes, and change how a card computes it: settings, start, and what is missing."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Mapping, Sequence

from npu_shim._host import host_device, host_env
from npu_shim._tensorflow.types import OptionValue
from npu_shim.distributed.world import world
from npu_shim.import_hook.after_tensorflow import after_tensorflow
from npu_shim.rehearsal import dumping

if TYPE_CHECKING:
    from npu_shim.rehearsal.recording.recorder import Recorder

_GRAPHS = "graphs"
_ALL_OFF = {"Switch": {"GraphFusion": {"ALL": "off"}, "UBFusion": {"ALL": "off"}}}
_FEW_BYTES = 20e9
_SEED = 1


@dataclass(frozen=True)
class Dumping(dumping.Dumping):
    """The settings of ``--dump`` and of the precision on an NPU.

    Attributes:
        folder: receives the dumps; None for none.
        steps: the dumped steps, from 0; those that overflow if it is empty.
        layers: the names of the dumped ops; all if it is empty.
        overflow: True to dump on an NPU only where numbers overflow.
        fusion: "off" to switch the fusion of ops off.
        precision: the option precision_mode.
        deterministic: True for kernels that repeat bit by bit.
        draws: the seed of a recording whose random numbers the card gets; None for its own.
    """

    folder: str | None = None
    steps: Sequence[int] = ()
    layers: Sequence[str] = ()
    overflow: bool = False
    fusion: str | None = None
    precision: str | None = None
    deterministic: bool = False
    draws: int | None = None

    @property
    def last_step(self) -> int | None:
        return max(self.steps) + 1 if self.steps else None

    def with_seed(self, seed: int) -> Dumping:
        return replace(self, draws=seed)

    def in_subfolder(self, name: str) -> Dumping:
        return replace(self, folder=os.path.join(self.folder, name)) if self.folder else self

    def why_nothing_dumped(self) -> str | None:
        """Return why a run on the CPU has dumped nothing for a step or an op; None if it has."""
        if not self.folder or host_device.detect_without_import().is_npu:
            return None
        from npu_shim.dumps.files import name_in_files

        paths = [os.path.join(world().rank_folder(self.folder), str(step)) for step in self.steps]
        names = [[name for name in _dump_names(path) if name.endswith(".npy")] for path in paths]
        empty = [str(step) for step, files in zip(self.steps, names) if not files]
        if empty and (len(empty) < len(names) or not self.layers):
            return f"nothing was dumped at step {', '.join(empty)}: the script ends before. Give earlier --dump-steps."
        for layer in self.layers:
            if not any(name.startswith(f"{name_in_files(layer)}.") for files in names for name in files):
                numbers = ", ".join(map(str, self.steps))
                return f"no op {layer!r} ran at step {numbers}. Dump without --dump-layers to see the names."
        return None

    def start_alone(self) -> None:
        """Begin in a process that is not recorded, and end its script after the last step. See start()."""
        if not self.folder:
            self.start(None)
            return
        from npu_shim.rehearsal.recording import random_seeds
        from npu_shim.rehearsal.recording.install import install_hooks
        from npu_shim.rehearsal.recording.recorder import Recorder
        from npu_shim.rehearsal.recording.settings import HookSettings
        from npu_shim.rehearsal.recording.writer import NoWriter

        recorder = Recorder(NoWriter(), limit=self.last_step)
        recorder.ends_after_training = True
        random_seeds.seed_python(_SEED, recorder.record_seed)
        self.start(recorder)
        install_hooks(recorder, HookSettings(_SEED))

    def start(self, recorder: Recorder | None) -> None:
        """Begin, as soon as the script has imported TensorFlow. Call it before the hooks of a recording are installed.

        Args:
            recorder: counts the steps; None without dumps.
        """
        folder = self.folder
        if folder:
            folder = world().rank_folder(folder)
            os.makedirs(folder, exist_ok=True)
            if os.listdir(folder):  # an earlier run of the same command has dumped
                folder = None
            else:
                _print_dump_plan(folder, self.steps)
        if host_device.detect_without_import().is_npu:
            self._start_on_npu(folder, recorder)
        elif folder and recorder is not None:
            into, counts = folder, recorder

            def begin() -> None:
                from npu_shim.dumps.cpu_dump import Dump

                Dump(into, self.steps, counts, self.layers).start()

            after_tensorflow(begin)

    def _start_on_npu(self, folder: str | None, recorder: Recorder | None) -> None:
        if folder:
            host_env.process_environ().update(_graph_variables(os.path.join(folder, _GRAPHS)))
        options = self.npu_options(folder)

        def note(npu_options: Mapping[str, OptionValue]) -> None:
            if recorder is not None:
                recorder.writer.write_event("note", npu_options=npu_options)

        def give() -> None:
            from npu_shim.config import given_options

            given_options.apply_to_new_sessions(options, note)

        after_tensorflow(give)
        if self.draws is not None and recorder is not None:
            counts, seed = recorder, self.draws

            def share() -> None:
                from npu_shim.dumps.draws import SharedDraws

                SharedDraws(counts, folder).start(seed)

            after_tensorflow(share)

    def npu_options(self, folder: str | None) -> dict[str, OptionValue]:
        """Return the NPU options for dumps in a folder, or for none."""
        npu_options: dict[str, OptionValue] = {}
        if folder:
            npu_options = {"enable_dump": not self.overflow, "enable_dump_debug": self.overflow, "dump_path": folder}
            if self.overflow:
                npu_options["dump_debug_mode"] = "all"
            else:
                npu_options.update(dump_step="|".join(map(str, self.steps)), dump_mode="all")
            npu_options["dump_layer"] = " ".join(self.layers)  # all without one, whatever the script asks for
        if self.fusion:
            npu_options["fusion_switch_file"] = _write_fusion_off(folder)
        if self.precision:
            npu_options["precision_mode"] = self.precision
        if self.deterministic:
            npu_options["deterministic"] = 1
        return npu_options


def _dump_names(folder: str) -> list[str]:
    """Return the names of the files in the folder of a step; those of the mapping for long ones."""
    from npu_shim.dumps.files import read_name_mapping

    return [*os.listdir(folder), *read_name_mapping(folder, {}).values()] if os.path.isdir(folder) else []


def _graph_variables(folder: str) -> dict[str, str]:
    """Return the variables with which the engine writes its graphs: without weights, before and after compilation."""
    os.makedirs(folder, exist_ok=True)
    return {"DUMP_GE_GRAPH": "2", "DUMP_GRAPH_LEVEL": "1", "DUMP_GRAPH_PATH": folder}


def _write_fusion_off(folder: str | None) -> str:
    """Write the file that switches all fusions off. Return its path."""
    if folder is None:
        folder = tempfile.mkdtemp(prefix="npu_shim_fusion_")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "fusion_switch.json")
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(_ALL_OFF, stream, indent=2)
    return path


def _print_dump_plan(folder: str, steps: Sequence[int]) -> None:
    free = shutil.disk_usage(folder).free
    what = f"the outputs of all ops at step {', '.join(map(str, steps))}" if steps else "ops that overflow"
    few = ". They may take more: dump fewer steps, or give a folder on another disk" if free < _FEW_BYTES else ""
    print(f"npu_shim: dumps {what} to {folder}, where {free / 1e9:.0f} GB are free{few}", file=sys.stderr, flush=True)
