"""samples/compare.py: what it reads from a run, and what it calls a difference."""

from __future__ import annotations

import pathlib

import pytest

from samples import compare, training

pytestmark = pytest.mark.once

OUTPUT = """INFO:tensorflow:step 1 loss 2.50000000
I1121 04:09:46.708069 140 basic_session_run_hooks.py:254] step 1 loss 2.50000000
step 20 loss 1.25000000
predicted 360 of 360 test images
accuracy 0.9722
"""


def run(losses: dict[int, float], accuracy: float = 0.97, seconds: float = 1.0) -> training.Run:
    return training.Run(losses, accuracy, seconds, "")


def row(original: training.Run, migrated: training.Run) -> compare.Row:
    sample = compare.Sample("some_sample", 1e-5, 0.02, 0.95)
    return compare.Row(sample, original, migrated, original, migrated)


def test_a_line_which_is_logged_twice_counts_once() -> None:
    parsed = training.parse(OUTPUT)
    assert parsed.losses == {1: 2.5, 20: 1.25}
    assert (parsed.final_loss, parsed.accuracy) == (1.25, 0.9722)


@pytest.mark.parametrize(
    "output, text",
    [
        ("accuracy 0.9\n", r'0 lines "step N loss X" and 1 lines "accuracy X"'),
        ("step 1 loss 2.5\n", r'1 lines "step N loss X" and 0 lines "accuracy X"'),
    ],
)
def test_output_without_losses_or_accuracy_is_an_error(output: str, text: str) -> None:
    with pytest.raises(training.SampleError, match=text):
        training.parse(output)


def test_the_largest_difference_is_over_all_steps() -> None:
    assert compare.largest_difference(run({1: 2.0, 2: 1.5, 3: 1.0}), run({1: 2.0, 2: 1.25, 3: 1.125})) == 0.25


def test_different_steps_are_an_error_which_names_them() -> None:
    with pytest.raises(training.SampleError, match=r"only one of them has \[3, 4\]"):
        compare.largest_difference(run({1: 2.0, 3: 1.0}), run({1: 2.0, 4: 1.0}))


@pytest.mark.parametrize("losses", [{1: float("nan"), 2: 1.0}, {1: 1.0, 2: float("nan")}])
def test_a_loss_which_is_not_a_number_is_an_error(losses: dict[int, float]) -> None:
    with pytest.raises(training.SampleError, match="not a number"):
        compare.largest_difference(run({1: 1.0, 2: 1.0}), run(losses))


def test_equal_runs_give_no_complaint() -> None:
    assert row(run({1: 2.0}), run({1: 2.0})).complaints() == []


@pytest.mark.parametrize(
    "migrated, text",
    [
        (run({1: 2.0, 2: 1.5}), "at step 2 the losses are 1.00000000 and 1.50000000; they may differ by 1e-05"),
        (run({1: 2.0, 2: 1.0}, 0.999), "accuracies are 0.9700 and 0.9990; they may differ by 0.02"),
        (run({1: 2.0, 2: 1.0}, 0.955, 9.9), ""),
        (run({1: 2.0, 2: 1.0}, 0.945), "at least 0.95 is expected"),
    ],
)
def test_a_complaint_says_step_values_and_what_is_allowed(migrated: training.Run, text: str) -> None:
    complaints = row(run({1: 2.0, 2: 1.0}), migrated).complaints()
    assert text in "\n".join(complaints)
    assert bool(complaints) == bool(text)


def test_the_table_has_one_line_per_sample_and_explains_its_columns() -> None:
    text = compare.table([row(run({1: 2.0, 2: 1.0}), run({1: 2.0, 2: 1.25}))])
    (line,) = [line for line in text.splitlines() if line.startswith("some_sample")]
    assert line.split() == ["some_sample", "1.00000000", "1.25000000", "2.5e-01", "0.9700", "0.9700", "2.0", "2.0"]
    for column in ("loss:", "largest diff:", "accuracy:", "seconds:"):
        assert column in text


def test_a_sample_which_fails_shows_the_end_of_its_log_and_where_it_is(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text('print("step 1 loss 2.0")\nraise RuntimeError("no such thing")\n')
    log = tmp_path / "logs" / "broken.log"
    with pytest.raises(training.SampleError) as error:
        training.Training(script, ["--dropout=0"], log).result()
    text = str(error.value)
    assert "broken.py --dropout=0: it ended with code 1" in text
    assert str(log) in text and "RuntimeError: no such thing" in text
    assert "RuntimeError: no such thing" in log.read_text()


def test_when_one_of_two_fails_the_other_is_ended_and_the_error_is_its_own(tmp_path: pathlib.Path) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text('print("step 1 loss 2.0")\nprint("accuracy 0.5")\n')
    bad.write_text("raise SystemExit(3)\n")
    with pytest.raises(training.SampleError, match="bad.py : it ended with code 3"):
        training.train_side_by_side(
            training.Training(good, [], tmp_path / "good.log"),
            training.Training(bad, [], tmp_path / "bad.log"),
            "title",
        )


def test_an_unknown_sample_is_wrong_usage_and_the_known_ones_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        compare.main(["digits_sesion"])
    assert error.value.code == 2
    assert "no such sample: digits_sesion; there are digits_estimator" in capsys.readouterr().err
