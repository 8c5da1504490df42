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
from samples import training
from tests.distributed import forks
from tests.rehearsal.half_scripts import DEFECTS, GRAPH_OPTIMIZER, LOOP_OPTIMIZER, Defect, script
from tests.rehearsal.test_mutants import RUNNABLE, environment, process_of_a_run

IS_TF2 = tf.__version__ >= "2"
IS_KERAS3 = hasattr(tf.keras.optimizers.SGD, "apply")
FORMS = ("graph", "loop", "fit") if IS_TF2 else ("graph",)
Verify = Callable[..., Any]

_SCALED = "NPULossScaleOptimizer({}, ExponentialUpdateLossScaleManager({}, 1000, decr_every_n_nan_or_inf=1, decr_ratio=0.5))"


@pytest.fixture
def verify(repo_root: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Verify:
    """verify(text, *arguments) -> exit code, result and text of ``npu-shim verify --half`` for a script."""

    def start(run: Run) -> int:
        for folder in (FILES, "tmp"):
            (pathlib.Path(run.folder) / folder).mkdir(parents=True, exist_ok=True)
        command = run.command()[3:]
        log = pathlib.Path(run.log)
        try:
            forks.run_script(process_of_a_run(repo_root), *command, log=log, environ=environment(), cwd=tmp_path)
        except AssertionError:
            return 1
        return 0

    def run(text: str, *arguments: str) -> Any:
        (tmp_path / "train.py").write_text(text)
        code = main(["verify", "--half", "-r", str(tmp_path / "r"), *arguments, str(tmp_path / "train.py")])
        found = json.loads((tmp_path / "r" / "verify.json").read_text())
        return code, found, capsys.readouterr().out

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Run, "start", start)
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
