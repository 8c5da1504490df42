"""The report of a prediction says what it knows, and what it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from npu_shim.rehearsal import sections
from npu_shim.rehearsal.predict.prediction import (
    Gain,
    OnRanks,
    PredictedMemory,
    PredictedOp,
    Prediction,
    Proposal,
    Range,
    Share,
)
from npu_shim.rehearsal.predict.prediction_report import prediction_sections

_OP = PredictedOp(
    "MatMulV2", 24, 0.006, "forward", "matrix unit", "type", ["FLOAT16;ND[32,64]"] * 3, [], ["train.py:7"]
)
_PREDICTION = Prediction(
    processor="Ascend910B3",
    device=Range(0.0081, 0.006, 0.011),
    step=Range(0.009, 0.007, 0.012),
    examples=Range(7111.0, 5333.0, 9143.0),
    phases=[Share("backward", 0.005), Share("forward", 0.003), Share("update", 0.00001)],
    limits=[Share("matrix unit", 0.006), Share("memory", 0.002)],
    ops=[_OP, replace(_OP, type="Cast", count=1, seconds=0.002, measured="class", lines=[])],
    not_measured=3,
    op_runs=1200,
    unknown_sizes=0,
    bounded_sizes=0,
    bounded_seconds=0.0,
    unknown_loops=[],
    unknown_branches=[],
    steps_in_call=1,
    host=0.0009,
    input_rate=50.0,
    input_ranks=1,
    memory=PredictedMemory(2**30, 2**31, 2**32, 2**20, 2**36, 64, 512, ""),
    gains=[Gain("mixed precision", 0.004, "precision.md")],
    ranks=[OnRanks(8, 0.0095, 0.002, 0.0005, 0.947)],
    proposals=[Proposal("precision_mode", "allow_mix_precision", 0.004, "16 bits")],
    edit=[],
)


def text_of(prediction: Prediction) -> str:
    """Return the report as text."""
    return "\n".join(sections.to_lines(prediction_sections(prediction)))


def test_the_report_answers_how_long_what_and_how_many() -> None:
    text = text_of(_PREDICTION)
    assert "9.00 ms (7.00 ms to 12.00 ms) a step, of which the device computes 8.10 ms" in text
    assert "7,111 examples a second (5,333 to 9,143)" in text
    assert "phases: backward 5.00 ms (62 %), forward 3.00 ms (37 %)\n" in text  # the update is too short
    assert (
        "3 of 1,200 runs of ops, 25 % of the time, are of types that nobody" in text
        and "50.0 batches a second; it limits the step" in text
    )
    assert "7.00 GiB: parameters 1.00 GiB, optimizer 2.00 GiB, activations 4.00 GiB, workspace 1.00 MiB" in text
    assert "fits into the card's 64.00 GiB. Batch 64 now; 512 fits at most" in text
    row = next(line.split() for line in text.splitlines() if line.startswith("  MatMulV2"))
    assert row[1:5] == ["24", "6.00", "ms", "75"] and row[-1] == "train.py:7"
    assert ["8", "9.50", "ms", "2.00", "ms", "500.00", "us", "94.7", "%"] in [
        line.split() for line in text.splitlines()
    ]
    assert "mixed precision  4.00 ms  precision.md" in text and "precision_mode=allow_mix_precision  4.00 ms" in text


@pytest.mark.parametrize(
    ("rate", "ranks", "verdict"),
    [
        (1000.0, 1, "it can feed the step"),
        (1000.0, 8, "it may limit the 8 ranks of a server"),
        (200.0, 4, "it limits the 4 ranks of a server"),
    ],
)
def test_the_host_of_a_server_reads_for_all_its_ranks(rate: float, ranks: int, verdict: str) -> None:
    assert f"batches a second; {verdict}\n" in text_of(replace(_PREDICTION, input_rate=rate, input_ranks=ranks))


def test_the_report_says_which_numbers_are_bounds_and_what_is_not_known() -> None:
    text = text_of(replace(_PREDICTION, bounded_sizes=40, bounded_seconds=0.005, steps_in_call=16))
    assert "at most 9.00 ms (7.00 ms to 12.00 ms) a step" in text and "at least 7,111 examples a second" in text
    assert "40 of 1,200 runs of ops have sizes that only values decide. With the largest sizes" in text
    assert "they take 5.00 ms\n" in text and "a call makes 16 steps\n" in text
    text = text_of(replace(_PREDICTION, unknown_loops=["rnn/while"], unknown_branches=["a", "b", "c", "d"]))
    assert "1 loop (rnn/while) of unknown length. Each counts once" in text
    assert "4 conditions (a, b, c, ...) with a branch that only values decide" in text
    assert "at most 9.00 ms" not in text and "a call makes" not in text
    for unknown in replace(_PREDICTION, unknown_sizes=7), replace(_PREDICTION, unknown_loops=["rnn/while"]):
        text = text_of(replace(unknown, bounded_sizes=40))  # a bound with times that are too short is none
        assert "so a step takes longer" in text and "at most 9.00 ms" not in text


def test_the_report_leaves_out_what_is_not_known() -> None:
    memory = replace(_PREDICTION.memory, card=2**32, batch=None, largest_batch=None, why="no input has a batch")
    text = text_of(
        replace(
            _PREDICTION,
            examples=None,
            input_rate=None,
            not_measured=0,
            gains=[],
            ranks=[],
            proposals=[],
            host=0.0,
            memory=memory,
        )
    )
    assert "examples a second" not in text and "batches a second" not in text and "nobody has measured" not in text
    assert "does not fit into the card's 4.00 GiB. The largest batch is not known: no input has a batch" in text
    assert "on several ranks" not in text and "would save" not in text and "proposed" not in text
