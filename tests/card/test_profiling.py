"""``npu-shim run --profile`` on a card: options for every session and device, or the vendor's profiler for some steps."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import time
from typing import Any

import pytest
import tensorflow as tf
from conftest import FACE, FOLDER, HERE

import npu_shim
from npu_shim._host import host_device
from npu_shim._tensorflow import patches
from npu_shim.config import given_options
from npu_shim.config.parameter_map import find_entry, read_options
from npu_shim.profiles import profile_reader, profiling
from npu_shim.profiles.profile_summary import to_page
from npu_shim.profiles.step_profiler import CardProfiler
from tests.marks import of_version_1
from tests.profiles import card

v1 = tf.compat.v1
RUN = """
import sys
from npu_shim._host import host_device
host_device.DEVICE_FILES = {files!r}
from npu_shim.cli import main
sys.exit(main(["run", *sys.argv[1:]]))
"""
TRAIN = """
import json, os
import tensorflow as tf
import vendor_code
from npu_bridge.npu_init import npu_config_proto
from npu_shim.config import given_options
from npu_shim.config.parameter_map import find_entry, read_options
v1 = tf.compat.v1
v1.disable_eager_execution()
written, write = [], given_options.config_with_options
given_options.config_with_options = lambda *given: written.append(write(*given)) or written[-1]
w = v1.get_variable("w", [])
train = v1.train.GradientDescentOptimizer(0.1).minimize(w * w)
config = v1.ConfigProto()
config.graph_options.rewrite_options.custom_optimizers.add().name = "NpuOptimizer"
with v1.Session(config=config) as session:
    options = read_options(find_entry(written[0]))
    config.graph_options.rewrite_options.ClearField("custom_optimizers")
with v1.Session() as session:
    session.run(w.initializer)
    for step in range(6):
        session.run(train)
        calls = [call.path.rpartition(".")[2] for call in vendor_code.CALLS if "Profiler.s" in call.path]
        print("after step", step, calls)
made = [call.arguments["output_path"] for call in vendor_code.CALLS if call.path.endswith("Profiler.__init__")]
folder = made[0] if made else json.loads(options["profiling_options"])["output"]
os.makedirs(os.path.join(folder, "PROF_000001_A"))
print("options", json.dumps(options))
"""


def run(folder: pathlib.Path, *options: str) -> tuple[str, str]:
    """Run the script with --profile. Return what it writes to standard output and standard error."""
    (folder / "run.py").write_text(RUN.format(files=os.path.join(FOLDER, "davinci[0-9]*")))
    (folder / "train.py").write_text(TRAIN)
    root = os.path.dirname(os.path.dirname(HERE))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((FOLDER, HERE, root, os.path.join(root, "tools")))}
    environment["PATH"] = os.pathsep.join((str(folder), os.environ["PATH"]))
    command = [sys.executable, "run.py", "--alias", "--profile", "profile", *options, "train.py"]
    done = subprocess.run(
        command,
        env=environment,
        cwd=str(folder),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@of_version_1
def test_the_whole_run_is_profiled_and_exported(tmp_path: pathlib.Path) -> None:
    (tmp_path / "msprof").write_text('#!/bin/sh\necho "exported $*"\n')
    (tmp_path / "msprof").chmod(0o755)
    output, report = run(tmp_path)
    options = json.loads(output.partition("options ")[2])
    assert options["profiling_mode"] is True
    assert json.loads(options["profiling_options"]) == {
        "output": str(tmp_path / "profile"),
        **{name: "on" for name in ("training_trace", "task_trace", "aicpu", "hccl")},
        **{"aic_metrics": "PipeUtilization", "fp_point": "", "bp_point": ""},
    }
    assert f"profiles the whole run to {tmp_path}/profile" in report
    assert f"exported --export=on --output={tmp_path}/profile/PROF_000001_A" in report
    assert f"Read the profile with: npu-shim profile {tmp_path}/profile" in report


@pytest.mark.nightly
@of_version_1
def test_the_vendors_profiler_profiles_some_steps(tmp_path: pathlib.Path) -> None:
    output, report = run(tmp_path, "--profile-steps", "2-3")
    after = dict(re.findall(r"after step (\d) (.*)", output))
    assert after["0"] == "[]"
    assert after["1"] == after["2"] == "['start']"
    assert after["3"] == after["5"] == "['start', 'stop']"
    assert json.loads(output.partition("options ")[2])["profiling_mode"] is False  # it excludes the profiler
    assert "profiled steps 2 to 3. They are exported when the script ends" in report
    command = f"msprof --export=on --output={tmp_path}/profile/PROF_000001_A"
    assert f"msprof is not on the PATH, or has failed. On the host with CANN, run: {command}" in report


def test_sessions_of_the_vendors_configs_are_profiled(tmp_path: pathlib.Path) -> None:
    patches.restore_all()
    given_options.apply_to_new_sessions(profiling.options_for_whole_run(str(tmp_path)))
    try:
        with tf.Graph().as_default(), v1.Session(config=npu_shim.session_config(profiling_mode=False)) as session:
            found = read_options(find_entry(session._config))
    finally:
        patches.restore_all()
    assert found["profiling_mode"] is True and json.loads(found["profiling_options"])["output"] == str(tmp_path)


def test_the_device_of_tensorflow_2_is_profiled(tmp_path: pathlib.Path) -> None:
    class Config:
        def as_dict(self) -> dict[str, str]:
            return {"enable_profiling": "0", "graph_run_mode": "1"}

    options = profiling.options_for_whole_run(str(tmp_path))
    Config.as_dict = given_options._wrap_as_dict(Config.as_dict, options, Config, lambda given: None)  # type: ignore[method-assign]
    found = Config().as_dict()
    assert found.pop("profiling_options") == options["profiling_options"]
    assert found == {"enable_profiling": "1", "graph_run_mode": "1"}


@pytest.mark.parametrize("reached", [[1, 2, 3, 4, 5], [2, 4, 6]], ids=["steps", "loops of two steps"])
def test_the_profiler_starts_and_stops_between_steps(
    reached: list[int], calls: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tf.compat.v1, "executing_eagerly_outside_functions", lambda: False, raising=False)
    steps = CardProfiler(2, 3, "folder")
    at: list[tuple[int, str]] = []
    for step in reached:
        before = len(calls)
        steps.set_step_count(0, step)
        at += [(step, call.path.rpartition(".")[2]) for call in calls[before:]]
    assert calls[0].arguments == {"level": "L1", "aic_metrics": "PipeUtilization", "output_path": "folder"}
    assert [each for each in at if each[1] != "__init__"] == [(2, "start"), (4, "stop")]


def test_all_steps_of_npu_device_are_profiled_and_the_wanted_ones_read(
    tmp_path: pathlib.Path, calls: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    if FACE == "npu_bridge":
        return
    given_options.apply_to_new_sessions(
        {"profiling_mode": False}, of_device=profiling.options_for_whole_run(str(tmp_path))
    )
    try:
        found = host_device.import_vendor_module("npu_device.configs.npu_config").NpuConfig().as_dict()
    finally:
        patches.restore_all()
    assert found["enable_profiling"] == "1" and json.loads(found["profiling_options"])["output"] == str(tmp_path)
    calls.clear()
    steps, rank = CardProfiler(3, 5, str(tmp_path)), card.Rank()
    marks = []
    for step in range(1, 9):
        marks.append(time.time_ns())
        time.sleep(0.002)
        steps.set_step_count(0, step)
    assert not calls and "npu-shim profile reads these steps of it" in capsys.readouterr().err
    for number, (begin, end) in enumerate(zip(marks, marks[1:])):
        rank.runs.append(card.Run(card.matmul("a"), begin + 1000, end - 1000))
        rank.steps.append((number, begin + 1000, end - 1000, end - 1000))
    card.write(tmp_path, rank)
    page = to_page(profile_reader.read_profile(str(tmp_path)), "")
    assert page.step is not None and page.step.number == 2  # between the hooks of steps 3 and 6
