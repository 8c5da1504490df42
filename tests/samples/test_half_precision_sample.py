"""The sample with float16 activations: the loss scale comes down, holds and grows, and the digits are read."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

from samples import training


def test_the_loss_scale_adapts(repo_root: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, str(repo_root / "samples" / "digits_half_precision" / "train.py")],
        env=training.environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    moves = [
        (int(step), float(old), float(new))
        for step, old, new in re.findall(r"step (\d+) .* scale (\S+) -> (\S+)", done.stdout)
    ]
    down = [step for step, old, new in moves if new == old / 2]
    up = [step for step, old, new in moves if new == old * 2]
    assert len(down) + len(up) == len(moves)
    assert down[:5] == [1, 2, 3, 4, 5]  # from 2**24 every first step overflows
    assert up and up[0] > down[5]
    skipped = int(re.search(r"(\d+) of them skipped", done.stdout).group(1))
    assert skipped == len(down)
    assert float(re.search(r"accuracy (\S+)", done.stdout).group(1)) > 0.93
