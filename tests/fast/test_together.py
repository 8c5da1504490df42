"""Ranks of a job that must run again with random numbers of their own, to see what they do together."""

from __future__ import annotations

import pytest

from npu_shim.rehearsal.comparing.read_recording import Recording
from npu_shim.rehearsal.comparing.together import needs_random_numbers_by_rank
from npu_shim.rehearsal.recording.events import Notes

ONE, OTHER = ("tf.random.set_seed", "1", "a.py:2"), ("tf.random.set_seed", "2", "a.py:2")
SENT = Notes(broadcast=True)


def rank(notes: Notes, *seeds: tuple[str, str, str]) -> Recording:
    return Recording({}, notes, seeds=list(seeds))


@pytest.mark.parametrize(
    "ranks, apart",
    [
        ([rank(SENT, ONE), rank(SENT, ONE)], False),
        ([rank(SENT), rank(SENT)], False),
        ([rank(SENT, ONE), rank(SENT, OTHER)], True),
        ([rank(SENT, ONE), rank(SENT)], True),
        ([rank(SENT, ("numpy.random.seed", "1", "a.py:3")), rank(SENT, ("numpy.random.seed", "2", "a.py:3"))], False),
        ([rank(Notes(), ONE), rank(Notes(), ONE)], True),
        ([rank(Notes(on_device=True), ONE), rank(Notes(on_device=True), OTHER)], False),
    ],
    ids=["equal seeds", "no seeds", "two seeds", "one seed", "seeds of NumPy", "no broadcast", "on a card"],
)
def test_ranks_draw_apart(ranks: list[Recording], apart: bool) -> None:
    assert needs_random_numbers_by_rank(ranks) == apart
