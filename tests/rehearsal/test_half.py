"""verify --half finds planted defects of precision, and none in sound scripts."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any, Callable

import pytest
import tensorflow as tf

from npu_shim.cli import main
from npu_shim.rehearsal.running import FILES, Run
from tests.distributed import forks
from tests.rehearsal.half_scripts import DEFECTS, Defect, script
from tests.rehearsal.test_mutants import SAMPLES, environment, process_of_a_run

IS_TF2 = tf.__version__ >= "2"
FORMS = ("graph", "loop", "fit") if IS_TF2 else ("graph",)
Verify = Callable[..., Any]
# Scales that overflow at first
_SCALE = 2.0**22
SCALED = {
    "graph": "NPULossScaleOptimizer(v1.train.AdamOptimizer(0.01), "
    f"ExponentialUpdateLossScaleManager({_SCALE}, 1000, decr_every_n_nan_or_inf=1, decr_ratio=0.5))",
    "fit": f"tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam(0.01), initial_scale={_SCALE})",
    "loop": f"npu.train.optimizer.NpuLossScaleOptimizer(tf.keras.optimizers.Adam(0.01), initial_scale={_SCALE})",
}


@pytest.fixture
def verify(repo_root: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Verify:
    """verify(text, *arguments) -> exit code, result and text of ``npu-shim verify --half`` for a script."""

    def run_script(run: Run) -> int:
        for folder in (FILES, "tmp"):
            (pathlib.Path(run.folder) / folder).mkdir(parents=True, exist_ok=True)
        command = run.command()[3:]
        log = pathlib.Path(run.log_path)
        try:
            forks.run_script(process_of_a_run(repo_root), *command, log=log, environ=environment(), cwd=tmp_path)
        except AssertionError:
            return 1
        return 0

    def run(text: str, *arguments: str) -> Any:
        path = tmp_path / "train.py"
        path.write_text(text, encoding="utf-8")
        given = list(arguments)
        scripts = [str(path)]
        if "--migrated" in given:
            scripts.append(given[-1])
            given = given[:-2]
        place = given.index("--") if "--" in given else len(given)
        code = main(["verify", "--half", "-r", str(tmp_path / "r"), *given[:place], *scripts, *given[place:]])
        found = json.loads((tmp_path / "r" / "verify.json").read_text())
        return code, found, capsys.readouterr().out

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Run, "run_script", run_script)
    return run


def cases() -> list[Any]:
    return [
        pytest.param(defect, form, id=f"{defect.name}, {form}")
        for defect in DEFECTS
        for form in defect.forms
        if form in FORMS
    ]


@pytest.mark.parametrize(("defect", "form"), cases())
def test_a_defect_of_precision_is_beyond_the_band(
    defect: Defect, form: str, verify: Verify, tmp_path: pathlib.Path
) -> None:
    options = []
    if defect.mixlist is not None:
        (tmp_path / "mixlist.json").write_text(defect.mixlist)
        options = ["--mixlist", "mixlist.json"]
    code, found, text = verify(script(form, defect.steps, **defect.places), *options)
    assert code == 1, text
    first = found["first_departure"]
    assert re.fullmatch(defect.first, f"{first['kind']} {first['name']}"), text
    assert first["step"] <= defect.last_step, text
    operation = found["half"]["overflow"]["first_op"]
    assert (operation or "").split(" ")[0] == defect.overflows, text
    if defect.mixlist is not None:
        assert verify(script(form, defect.steps, **defect.places))[0] == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("form", FORMS)
def test_a_sound_script_is_within_the_band(form: str, dtype: str, verify: Verify) -> None:
    code, found, text = verify(script(form), f"--half={dtype}")
    assert code == 0 and text.endswith(f"The {dtype} run is within the band of float32.\n"), text
    half = found["half"]
    assert half["skipped"] == 0 and half["overflow"]["first_op"] is None and 0 < half["largest_share"] < 1
    assert half["loss"]["difference"] > 0


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_is_within_the_band(sample: str, verify: Verify, repo_root: pathlib.Path) -> None:
    written = (repo_root / "samples" / sample / "expected_npu.py").read_text(encoding="utf-8")
    code, found, text = verify(written, "--", "--steps=20")
    overflow = found["half"]["overflow"]["first_op"]
    if sample == "text_keras" and not IS_TF2:
        # Keras of TensorFlow 1.15 takes the logarithm of probabilities p, and 1 / p exceeds 65504
        assert code == 1 and overflow.startswith("Reciprocal") and "Log_grad" in overflow, text
        code, found, text = verify(written, "--half=bfloat16", "--", "--steps=20")
        overflow = found["half"]["overflow"]["first_op"]
    assert code == 0 and found["half"]["ops"] and overflow is None, text


@pytest.mark.parametrize(
    ("form", "saturate"),
    # the loss scale of Keras does not ask the flag that saturation sets
    [(form, saturate) for form in FORMS for saturate in (False, True) if (form, saturate) != ("fit", True)],
)
def test_steps_that_the_loss_scale_skips_are_counted_and_no_difference(
    form: str, saturate: bool, verify: Verify
) -> None:
    code, found, text = verify(script(form, optimizer=SCALED[form]), *(["--saturate"] if saturate else []))
    assert code == 0, text
    half = found["half"]
    assert half["steps"] == 12 and 0 < half["skipped"] < 9, text
    assert half["skipped_steps"] == list(range(1, half["skipped"] + 1))
    assert half["loss_scale"] == [_SCALE, _SCALE / 2 ** half["skipped"], _SCALE / 2 ** half["skipped"]]
    assert found["original"]["steps"] == found["migrated"]["steps"] == 12 - half["skipped"]
    assert bool(half["overflow"]["saturated"]) == saturate and bool(half["overflow"]["first_op"]) != saturate
    assert f"steps that the loss scale skipped: {half['skipped']} of 12 (1" in text


def test_a_loss_scale_that_does_not_recover_is_a_difference(verify: Verify) -> None:
    loss = "loss = tf.reduce_mean(tf.exp(tf.square(output - y) + 11.5) * 1e-5)"
    code, found, text = verify(script("graph", loss=loss, optimizer=SCALED["graph"]))
    assert code == 1 and found["half"]["skipped"] == 12 and found["original"]["steps"] == 0
    assert "The loss scale does not recover: the last 12 of 12 steps were skipped, and the scale is 2048." in text


def test_an_original_without_a_loss_scale_cannot_skip(verify: Verify, tmp_path: pathlib.Path) -> None:
    migrated = tmp_path / "migrated.py"
    migrated.write_text(script("graph", optimizer=SCALED["graph"]), encoding="utf-8")
    code, found, text = verify(script("graph"), "--migrated", str(migrated))
    assert code == 2 and "has no loss scale to skip them in float32. Give the migrated script alone" in text
