"""Loops that count their batches themselves, found for ``npu-shim observe``."""

from __future__ import annotations

import pathlib

import pytest

from npu_shim.rehearsal.observing.own_counters import compares_own_count

LOOP = """COMPUTED
for batch in dataset:
    train(batch)
    step += 1
    if TEST:
        evaluate()
"""


@pytest.mark.parametrize(
    "computed, test, counts",
    [
        ("last = examples // size", "step == last", True),
        ("self.last = -(-examples // size)", "step % self.last == 0", True),
        ("epoch = math.ceil(examples / size); last = 3 * epoch", "step >= last", True),
        ("", "len(x) <= step * size", True),
        ("last = FLAGS.steps", "step == last", False),
        ("last = examples // size", "step % 100 == 0 and losses[-1] < last", False),
        ("last = examples // size", "other == last", False),
    ],
)
def test_a_counter_counts_if_it_is_compared_with_a_computed_number(
    computed: str, test: str, counts: bool, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(LOOP.replace("COMPUTED", computed).replace("TEST", test))
    assert compares_own_count(str(path), 2) is counts
    path.write_text(
        path.read_text().replace("step += 1", "self.step = 1 + self.step").replace("if step", "if self.step")
    )
    assert compares_own_count(str(path), 2) is counts
    assert not compares_own_count(str(path), 3) and not compares_own_count(str(tmp_path / "none.py"), 2)
