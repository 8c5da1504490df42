"""The sample with float16 activations: the loss scale comes down, holds and grows, and the digits are read."""

from __future__ import annotations

import pathlib
import re

import pytest

from samples import training
from tests.distributed import forks


@pytest.mark.once
def test_the_loss_scale_adapts(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    script = repo_root / "samples" / "digits_half_precision" / "train.py"
    said = forks.run_script(script, log=tmp_path / "log", environ=training.environment(), cwd=tmp_path)
    moves = [
        (int(step), float(old), float(new))
        for step, old, new in re.findall(r"step (\d+) .* scale (\S+) -> (\S+)", said)
    ]
    down = [step for step, old, new in moves if new == old / 2]
    up = [step for step, old, new in moves if new == old * 2]
    assert len(down) + len(up) == len(moves)
    assert down[:5] == [1, 2, 3, 4, 5]  # from 2**24 every first step overflows
    assert up and up[0] > down[5]
    skipped = int(re.search(r"(\d+) of them skipped", said).group(1))
    assert skipped == len(down)
    assert float(re.search(r"accuracy (\S+)", said).group(1)) > 0.93
