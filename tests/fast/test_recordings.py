"""Digests, matching, tolerances, comparison, seeds, ranks and reports of verify, without TensorFlow."""

from __future__ import annotations

import json
import math
import pathlib
import re
import subprocess
import sys
import time
import weakref
import xml.etree.ElementTree
from typing import Any

import numpy as np
import pytest

from npu_shim.rehearsal import elements, reproducing
from npu_shim.rehearsal.comparing import ranks, seeds
from npu_shim.rehearsal.comparing.comparison import compare_recordings
from npu_shim.rehearsal.comparing.read_recording import Recording, read_recording
from npu_shim.rehearsal.comparing.tolerances import allowed_difference, digest_distance, printed_difference
from npu_shim.rehearsal.recording.digest import (
    HEAD,
    NORM,
    NOT_FINITE,
    Digests,
    digest,
    digest_length,
    elements_from_digest,
    is_numeric,
    scalar_from_digest,
)
from npu_shim.rehearsal.recording.entropy import Entropy, is_from_clock
from npu_shim.rehearsal.recording.kinds import (
    FETCH,
    FINAL,
    GRADIENT,
    INPUT,
    LOG,
    LOSS,
    METRIC,
    PREDICTION,
    PRINT,
    RATE,
    TAPE,
    VARIABLE,
)
from npu_shim.rehearsal.recording.printed_numbers import name_and_numbers_of
from npu_shim.rehearsal.recording.random_seeds import call_site_seed
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.writer import FILE, KEPT, Writer
from npu_shim.rehearsal.reports import WRITERS, write_reports
from npu_shim.rehearsal.reports.text import to_text
from npu_shim.rehearsal.result import Element
from tests.recordings import STEPS, recording, unchanged, verified

RANDOM = np.random.RandomState(3)


@pytest.mark.parametrize("size", [1, 31, 32, 33, 1000, 70_000])
def test_distance_is_the_norm_of_the_difference(size: int) -> None:
    one, change = RANDOM.randn(size), 1e-3 * RANDOM.randn(size)
    found = digest_distance(digest(one), digest(one + change)) / np.linalg.norm(change)
    assert found == pytest.approx(1, rel=1e-9) if size <= 32 else 0.5 < found < 1.6  # 32 buckets: 18 % in one sigma


def test_a_single_different_element_shows_exactly() -> None:
    one = RANDOM.randn(70_000).astype("f4")
    other = one.copy()
    other[66_000] += 0.5
    assert digest_distance(digest(one), digest(other)) == pytest.approx(0.5, rel=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e-18, 1.0, 1e18, 1e30])
@pytest.mark.parametrize("size", [33, 70_000])
def test_the_digest_of_float32_is_that_of_float64_but_for_rounding(size: int, scale: float) -> None:
    value = (scale * RANDOM.randn(size)).astype("f4")
    ours, exact = digest(value), digest(value.astype("f8"))
    assert digest_distance(ours, exact) < 1e-6 * exact[NORM] and ours[NORM] == pytest.approx(exact[NORM], rel=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float64", "complex64"])
def test_types_with_numbers_have_a_digest(dtype: str) -> None:
    value = np.array([[1, 0, 1]]).astype(dtype)
    assert is_numeric(value) and len(digest(value)) == digest_length((1, 3)) == HEAD + 3
    assert digest(value)[NORM] == pytest.approx(math.sqrt(2))
    assert not is_numeric(np.array([b"text"])) and not is_numeric(np.array([None]))


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "f8"])
@pytest.mark.parametrize("size", [2, 9, 70_001, 600_000])
def test_digests_show_any_changed_element(size: int, dtype: str) -> None:
    one = (np.arange(size) % 251).astype(dtype)
    for place in (0, size // 2, size - 1):
        other = one.copy()
        other[place] += 1
        assert digest_distance(digest(one), digest(other)) == pytest.approx(1, rel=1e-3)
    swapped = np.concatenate([one[1::-1], one[2:]])
    assert digest_distance(digest(one), digest(swapped)) > 0.5 and digest_distance(digest(one), digest(one.copy())) == 0


def test_the_digest_of_a_kept_array_is_made_once() -> None:
    digests, one = Digests(), RANDOM.randn(40, 10).astype("f4")
    kept = digests.compute_digest(one, is_kept=True)
    assert digests.compute_digest(one[:]) is kept
    for other in (one.T, one[1:], one.view("i4"), one.copy()):
        np.testing.assert_array_equal(digests.compute_digest(other), digest(other))
    digests.release_arrays()
    one += 1
    np.testing.assert_array_equal(digests.compute_digest(one), digest(one))


def test_later_steps_digest_all_elements_of_large_variables_in_turn(tmp_path: pathlib.Path) -> None:
    """So large layers cost little. The first ten steps, and the last variables, are digested as a whole."""
    size, shares = 300_000, 2
    writer, one = Writer(str(tmp_path)), np.ones(size, "f4")
    for step in range(1, 11 + shares):
        writer.write_rows(step, [(kind, kind, one) for kind in (INPUT, VARIABLE, FINAL)])
    streams = read_recording(str(tmp_path)).streams
    squares = {kind: [value.digest[NORM] ** 2 for value in streams[kind, kind].values] for kind in (VARIABLE, FINAL)}
    assert squares[FINAL] == pytest.approx([size] * (10 + shares)) and squares[VARIABLE][:10] == squares[FINAL][:10]
    assert sum(squares[VARIABLE][10:]) == pytest.approx(size) and min(squares[VARIABLE][10:]) > 0
    for place in (0, size // 2, size - 1):
        other = one.copy()
        other[place] = 2
        far = [digest_distance(*(Digests().compute_digest(each, turn) for each in (one, other))) for turn in (11, 12)]
        assert sorted(far) == pytest.approx([0, 1])


def test_a_writer_keeps_gradients_of_tapes_until_the_update(tmp_path: pathlib.Path) -> None:
    writer, gradient = Writer(str(tmp_path)), np.ones(100, "f4")
    alive = weakref.ref(gradient)
    writer.write_rows(1, [(TAPE, "w", gradient)])
    del gradient
    assert alive() is not None
    writer.write_rows(1, [(GRADIENT, "w", np.ones(3))])
    assert alive() is None


_TIMED = """
import time, numpy, npu_shim.rehearsal.recording.digest as digest
values = numpy.random.RandomState(0).randn(20, 70_000)
time.sleep(0.5)  # the import of NumPy starts such threads, too
everywhere, here = time.process_time(), time.thread_time()
for value in values:
    digest.digest(value)
    time.sleep(0.005)  # a thread that waits busily takes CPU time now
print((time.process_time() - everywhere) / (time.thread_time() - here))
"""


def test_a_digest_starts_no_thread_that_takes_time_of_the_script() -> None:
    """The process is a new one, because other tests start such threads."""
    assert float(subprocess.check_output([sys.executable, "-c", _TIMED])) < 2


def test_inf_and_nan_are_counted_and_make_an_infinite_distance() -> None:
    finite, infinite = np.array([1.0, 2.0]), np.array([np.inf, 2.0])
    assert digest(infinite)[NOT_FINITE] == 1 and digest(infinite)[NORM] == 2
    assert digest_distance(digest(finite), digest(infinite)) == math.inf
    assert digest_distance(digest(infinite), digest(infinite)) == 0
    assert (
        math.isnan(scalar_from_digest(digest(np.float32("nan")))) and scalar_from_digest(digest(np.float32(-3))) == -3
    )


@pytest.mark.parametrize("ours, theirs, agrees", [("f8", "f4", True), ("f8", "f8", False), ("f4", "f8", True)])
def test_float64_that_became_float32_is_compared_as_float32(
    ours: str, theirs: str, agrees: bool, tmp_path: pathlib.Path
) -> None:
    def of_type(dtype: str, factor: float) -> Any:
        def change(step: int, kind: str, name: str, value: np.ndarray) -> np.ndarray:
            return np.asarray(value * factor, dtype) if kind == LOSS else value

        return change

    original = recording(tmp_path / "original", of_type(ours, 1.0))
    migrated = recording(tmp_path / "migrated", of_type(theirs, 1 + 1e-6))
    assert (compare_recordings(original, migrated, 1e-5).first_departure is None) == agrees


def test_tolerances_follow_type_and_step() -> None:
    assert allowed_difference("int32", INPUT, 5) == 0
    assert allowed_difference("float32", GRADIENT, 100) == pytest.approx(2e-5)
    assert (
        allowed_difference("float64", GRADIENT, 0)
        < allowed_difference("float32", GRADIENT, 0)
        < allowed_difference("float16", GRADIENT, 0)
    )
    assert allowed_difference("float64", METRIC, 0) == allowed_difference("float32", METRIC, 0)


def test_equal_recordings_agree(tmp_path: pathlib.Path) -> None:
    found = compare_recordings(recording(tmp_path / "a"), recording(tmp_path / "b"))
    assert found.first_departure is None and len(found.compared) == 8
    assert found.largest_difference_by_step() == dict.fromkeys(range(1, STEPS + 1), 0.0)


@pytest.mark.parametrize("line, has_values", [("step 3 of 4", False), ("loss 0.25", True)])
def test_printed_numbers_with_decimals_are_values(tmp_path: pathlib.Path, line: str, has_values: bool) -> None:
    recorder = Recorder(Writer(str(tmp_path)))
    name, numbers = name_and_numbers_of(line)
    recorder.record_values(PRINT, [(name, np.array(each)) for each in numbers])
    recorder.writer.write_event("end", ended="returned")
    found = read_recording(str(tmp_path))
    assert compare_recordings(found, found).has_computed_values() == has_values


def changed_from(start: int, wanted: str, factor: float) -> Any:
    def change(step: int, kind: str, name: str, value: np.ndarray) -> np.ndarray:
        return value * np.asarray(factor, value.dtype) if step >= start and f"{kind} {name}" == wanted else value

    return change


@pytest.mark.parametrize(
    "wanted",
    ["input batch 0", "loss loss", "gradient second/kernel", "learning rate learning_rate", "variable first/kernel"],
)
def test_the_first_departure_has_the_right_step_and_tensor(wanted: str, tmp_path: pathlib.Path) -> None:
    found = compare_recordings(recording(tmp_path / "a"), recording(tmp_path / "b", changed_from(3, wanted, 1.001)))
    assert found.first_departure is not None and (
        found.first_departure.step,
        f"{found.first_departure.kind} {found.first_departure.name}",
    ) == (3, wanted)
    assert found.first_departure.difference == pytest.approx(1e-3, rel=0.5)
    assert (
        compare_recordings(
            recording(tmp_path / "c"), recording(tmp_path / "d", changed_from(3, wanted, 1.000001))
        ).first_departure
        is None
    )


def test_at_one_step_the_kind_nearest_to_the_cause_comes_first(tmp_path: pathlib.Path) -> None:
    def change(step: int, kind: str, name: str, value: np.ndarray) -> np.ndarray:
        return value * 2 if kind in (VARIABLE, GRADIENT) and "second" in name else value

    first = compare_recordings(recording(tmp_path / "a"), recording(tmp_path / "b", change)).first_departure
    assert first is not None and (first.kind, first.name) == (GRADIENT, "second/kernel")


def test_of_two_updates_in_one_step_the_earlier_one_comes_first(tmp_path: pathlib.Path) -> None:
    """The rate of a critic departs, and so does what the actor is called with after that update."""

    def run(name: str, rate: float) -> Recording:
        (tmp_path / name).mkdir()
        writer = Writer(str(tmp_path / name))
        recorder = Recorder(writer)
        recorder.record_update(
            0, [(RATE, "critic", np.float32(rate)), (VARIABLE, "critic/kernel", np.float32(1 - rate))]
        )
        recorder.record_tensors([(INPUT, "actor", np.float32(1 - rate))], {"actor/kernel"})
        recorder.record_update(1, [(RATE, "actor", np.float32(0.1)), (VARIABLE, "actor/kernel", np.float32(2 - rate))])
        writer.write_event("end", ended="returned", steps=1, seconds=1.0, peak_bytes=1)
        return read_recording(str(tmp_path / name))

    found = compare_recordings(run("original", 0.1), run("migrated", 0.102))
    assert [each.name for each in found.departures] == ["critic", "critic/kernel", "actor", "actor/kernel"]


def test_a_gradient_of_one_script_comes_after_what_departs_before_its_update(tmp_path: pathlib.Path) -> None:
    def run(name: str, loss: float, *trained: str) -> Recording:
        (tmp_path / name).mkdir()
        writer = Writer(str(tmp_path / name))
        recorder = Recorder(writer)
        recorder.record_update(0, [(RATE, "critic", np.float32(0.1))])
        recorder.record_tensors([(LOSS, "loss", np.float32(loss))], {"kernel"})
        recorder.record_update(1, [(GRADIENT, each, np.ones(len(each), "f4")) for each in trained])
        writer.write_event("end", ended="returned", steps=1, seconds=1.0, peak_bytes=1)
        return read_recording(str(tmp_path / name))

    one, more = run("one", 1.0, "kernel"), run("more", 1.5, "kernel", "frozen scale")
    for found in (compare_recordings(one, more), compare_recordings(more, one)):
        assert [each.name for each in found.departures] == ["loss", "frozen scale"]


def test_a_loss_scale_is_no_difference_but_scaled_gradients_are(tmp_path: pathlib.Path) -> None:
    ours = recording(tmp_path / "a")
    assert (
        compare_recordings(ours, recording(tmp_path / "b", changed_from(1, "loss loss", 1024))).first_departure is None
    )
    assert (
        compare_recordings(ours, recording(tmp_path / "c", changed_from(1, "loss loss", 3))).first_departure is not None
    )
    assert (
        compare_recordings(
            ours, recording(tmp_path / "d", changed_from(1, "gradient first/kernel", 1024))
        ).first_departure
        is not None
    )


@pytest.mark.parametrize(
    ("body", "is_equal"),
    [
        ("seed = (id(given) +\n            int(datetime.now().strftime('%H%M%S%f')) % 4294967295)", True),
        ("seed = int(time.time() * 1e6) % 1000", True),
        ("seed = int(time.time()) + given\n    seed = given", False),
        ("seed = given", False),
    ],
)
def test_a_seed_that_the_function_gets_from_a_clock_is_the_same_in_every_run(
    body: str, is_equal: bool, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "seeds.py"
    path.write_text(
        f"import time\nfrom datetime import datetime\n\n\ndef make(draw, given):\n    {body}\n    return draw('x', seed)\n"
    )
    space: dict[str, Any] = {"__name__": "seeds"}
    exec(compile(path.read_text(), str(path), "exec"), space)
    seeds = [space["make"](Entropy(1, lambda *_: None).repeatable_seed, given) for given in (3, 7)]
    assert (seeds[0] == seeds[1]) is is_equal and (is_equal or seeds == [3, 7])


FORKS = """
import multiprocessing
from npu_shim.rehearsal.recording.entropy import Entropy

Entropy(1, lambda *_: None).replace_entropy_functions()
with multiprocessing.get_context("fork").Pool(1) as one, multiprocessing.get_context("fork").Pool(1) as other:
    print([each.apply(eval, ("__import__('random').random()",)) for each in (one, other)])
"""


def test_forked_processes_draw_the_same_numbers_in_every_run() -> None:
    found = [subprocess.check_output([sys.executable, "-c", FORKS], text=True) for _ in range(2)]
    assert found[0] == found[1]
    one, other = json.loads(found[0])
    assert one != other


def rounding_of(size: float, until: int = STEPS) -> Any:
    """Return a change that makes the gradient of the second layer rounding, and its variable follow it at random."""
    random = np.random.RandomState(int(1e9 * size))

    def change(step: int, kind: str, name: str, value: np.ndarray) -> np.ndarray:
        if name != "second/kernel":
            return value
        random_value = random.randn(*value.shape).astype(value.dtype)
        return random_value * np.float32(size if kind == GRADIENT and step <= until else 1)

    return change


def test_a_gradient_that_is_zero_but_for_rounding_is_no_difference_nor_is_its_variable(tmp_path: pathlib.Path) -> None:
    found = compare_recordings(
        recording(tmp_path / "a", rounding_of(1e-6)), recording(tmp_path / "b", rounding_of(2e-6))
    )
    assert found.first_departure is None and found.undetermined == ["second/kernel"]
    text = to_text(verified(tmp_path / "c", rounding_of(1e-6)))
    assert "not compared" not in text and "gradient second/kernel" in text, "only one of the two is zero"


@pytest.mark.parametrize("inexact", [True, False])
def test_a_variable_may_differ_by_more_from_the_step_at_which_its_gradient_differs(
    inexact: bool, tmp_path: pathlib.Path
) -> None:
    def change(step: int, kind: str, name: str, value: np.ndarray) -> np.ndarray:
        if name != "first/kernel" or step < 2:
            return value
        return value * np.float32(1.00005 if kind == VARIABLE else 1.000002 if inexact else 1)

    found = compare_recordings(recording(tmp_path / "a"), recording(tmp_path / "b", change))
    assert (found.first_departure is None) == inexact
    if found.first_departure is not None:
        assert (found.first_departure.step, found.first_departure.kind, found.first_departure.name) == (
            2,
            VARIABLE,
            "first/kernel",
        )
    early = changed_from(1, "variable first/kernel", 1.00005)
    later = lambda step, kind, name, value: early(step, kind, name, change(step, kind, name, value))  # noqa: E731
    first = compare_recordings(recording(tmp_path / "c"), recording(tmp_path / "d", later)).first_departure
    assert first is not None and (first.step, first.kind) == (1, VARIABLE), "the gradient is equal until step 2"


@pytest.mark.parametrize(("size", "until", "step"), [(1e-4, STEPS, 1), (1e-6, 2, 3)])
def test_a_gradient_with_more_than_rounding_is_a_difference(
    size: float, until: int, step: int, tmp_path: pathlib.Path
) -> None:
    ours, theirs = rounding_of(size, until), rounding_of(2 * size, until)
    found = compare_recordings(recording(tmp_path / "a", ours), recording(tmp_path / "b", theirs))
    assert found.undetermined == [] and found.first_departure is not None
    assert (found.first_departure.step, found.first_departure.kind, found.first_departure.name) == (
        step,
        GRADIENT,
        "second/kernel",
    )


def test_names_that_differ_pair_by_order(tmp_path: pathlib.Path) -> None:
    ours, theirs = recording(tmp_path / "a"), recording(tmp_path / "b")
    theirs.streams = {(kind, name.replace("second", "third")): each for (kind, name), each in theirs.streams.items()}
    for stream in theirs.streams.values():
        stream.name = stream.name.replace("second", "third")
    found = compare_recordings(ours, theirs)
    assert found.first_departure is None and len(found.compared) == 8 and not found.matches.only_original


def test_inputs_of_models_that_a_step_calls_twice_pair_with_no_batch(tmp_path: pathlib.Path) -> None:
    """A discriminator gets the batch and what the generator makes."""
    batch = np.ones((8, 4), "f4")
    for folder, name, values in ("ours", "discriminator 0", [batch, batch + 1]), ("theirs", "batch_x", [batch + 2]):
        (tmp_path / folder).mkdir()
        writer = Writer(str(tmp_path / folder))
        for step in (1, 2):
            writer.write_rows(step, [(INPUT, name, value) for value in values])
    ours, theirs = (read_recording(str(tmp_path / folder)) for folder in ("ours", "theirs"))
    result = compare_recordings(ours, theirs)
    assert result.compared == [] and result.first_departure is None
    alone = (*result.matches.only_original, *result.matches.only_migrated)
    assert [stream.name for stream in alone] == ["discriminator 0", "batch_x"]


def test_variables_in_another_scope_pair_by_the_last_part_of_their_names(tmp_path: pathlib.Path) -> None:
    powers = {"beta1_power": 0.59, "beta2_power": 0.99}
    scaled = {"loss_scale": 1024.0, **{f"cond/{name}": value for name, value in powers.items()}}
    made = []
    for folder, values in ((tmp_path / "a", powers), (tmp_path / "b", scaled)):
        folder.mkdir()
        Recorder(Writer(str(folder))).record_final_variables(values.items())
        made.append(read_recording(str(folder)))
    found = compare_recordings(*made)
    assert [(one.name, other.name) for one, other in found.matches.pairs] == [(name, f"cond/{name}") for name in powers]
    assert [stream.name for stream in found.matches.only_migrated] == ["loss_scale"]


def logged(folder: pathlib.Path, *logs: tuple[str, float]) -> Recording:
    """Return a recording of logs of Keras."""
    folder.mkdir()
    writer = Writer(str(folder))
    Recorder(writer).record_values(LOG, logs)
    return read_recording(str(folder))


def test_logs_of_another_version_of_keras_pair_by_name(tmp_path: pathlib.Path) -> None:
    ours = logged(tmp_path / "a", ("acc", 0.25), ("loss", 2.0), ("learning_rate", 0.5))
    theirs = logged(tmp_path / "b", ("loss", 2.0), ("acc", 0.25), ("lr", 0.5))
    found = compare_recordings(ours, theirs)
    assert found.first_departure is None and len(found.compared) == 3
    found = compare_recordings(
        logged(tmp_path / "c", ("auc", 0.25), ("auc_1", 0.5)), logged(tmp_path / "d", ("auc_1", 0.25), ("auc_2", 0.5))
    )
    assert found.first_departure is None and len(found.compared) == 2


def fetched(folder: pathlib.Path, mean: str, accuracy: str) -> Recording:
    """Return a run that fetches a mean at each of three steps, and an accuracy at the last."""
    folder.mkdir()
    writer = Writer(str(folder))
    for step in (1, 2, 3):
        writer.write_rows(step, [(LOSS, "loss", np.array(1.0)), (FETCH, mean, np.array(0.1 * step))])
    writer.write_rows(3, [(FETCH, accuracy, np.array(0.9))])
    return read_recording(str(folder))


def test_a_rewrite_may_renumber_the_names_after_it(tmp_path: pathlib.Path) -> None:
    original = fetched(tmp_path / "original", "Mean_1", "Mean_2")
    migrated = fetched(tmp_path / "migrated", "truediv", "Mean_1")
    assert compare_recordings(original, migrated).departures == []
    other = fetched(tmp_path / "other", "Mean_1", "loss_1")
    assert compare_recordings(original, other).departures == []
    cut = fetched(tmp_path / "cut", "Mean_1", "Mean_2")
    del cut.streams_of_kind(FETCH)[0].values[1:]
    departures = compare_recordings(original, cut).departures
    assert [(departure.kind, departure.name) for departure in departures] == [(FETCH, "Mean_1")]


def test_variables_of_one_name_are_apart(tmp_path: pathlib.Path) -> None:
    recorder = Recorder(Writer(str(tmp_path)))
    for step in range(2):
        recorder.record_update(0, [(VARIABLE, "Variable", np.float32(number + step)) for number in range(2)])
    found = read_recording(str(tmp_path)).streams_of_kind(VARIABLE)
    assert [(each.name, len(each.values)) for each in found] == [("Variable", 2), ("Variable (2)", 2)]


def test_missing_values_and_other_shapes_are_differences(tmp_path: pathlib.Path) -> None:
    def lost(step: int, kind: str, name: str, value: np.ndarray) -> Any:
        return None if kind == GRADIENT and name == "second/kernel" else value

    def cut(step: int, kind: str, name: str, value: np.ndarray) -> Any:
        return value[:-1] if kind == INPUT and step == STEPS else value

    ours = recording(tmp_path / "a")
    first = compare_recordings(ours, recording(tmp_path / "b", lost)).first_departure
    assert first is not None and first.name == "second/kernel" and first.text.startswith("only the original script")
    first = compare_recordings(ours, recording(tmp_path / "c", cut)).first_departure
    assert first is not None and (first.step, first.text) == (STEPS, "shape [8, 4] and [7, 4]")


def test_fewer_values_name_the_first_missing_step(tmp_path: pathlib.Path) -> None:
    ours, theirs = recording(tmp_path / "a"), recording(tmp_path / "b")
    del theirs.streams[GRADIENT, "first/kernel"].values[3:]
    first = compare_recordings(ours, theirs).first_departure
    assert first is not None and (first.step, first.text) == (4, "5 and 3 values")


def test_a_recording_that_a_crash_cuts_off_is_read(tmp_path: pathlib.Path) -> None:
    recording(tmp_path / "a", ended="")
    with open(tmp_path / "a" / FILE, "a", encoding="utf-8") as file:
        file.write('{"event": "rows", "tab')
    found = read_recording(str(tmp_path / "a"))
    assert found.steps == STEPS and found.end is None


def test_a_script_without_an_optimizer_is_counted_by_its_tapes(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a").mkdir()
    recorder = Recorder(Writer(str(tmp_path / "a")))
    for step in range(3):
        recorder.record_tensors([(LOSS, "loss", np.asarray(1.0 / (step + 1)))])
    recorder.record_values(PREDICTION, [("predict", np.zeros(2))])
    found = read_recording(str(tmp_path / "a"))
    assert [value.step for value in found.streams[LOSS, "loss"].values] == [1, 2, 3]
    assert [value.step for value in found.streams[PREDICTION, "predict"].values] == [3]


def test_every_thins_gradients_but_no_losses(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a").mkdir()
    recorder = Recorder(Writer(str(tmp_path / "a")), every=8)
    for _ in range(20):
        recorder.record_update(0, [(LOSS, "loss", np.ones(())), (GRADIENT, "kernel", np.ones(3))])
    found = read_recording(str(tmp_path / "a"))
    assert len(found.streams[LOSS, "loss"].values) == 20
    assert [value.step for value in found.streams[GRADIENT, "kernel"].values] == [*range(1, 11), 16]


@pytest.mark.parametrize("factors", [(0.5, 1.5), (0.25, 0.75)], ids=["averaged", "added, as with a strategy"])
def test_losses_of_ranks_are_joined_and_their_variables_compared(
    factors: tuple[float, float], tmp_path: pathlib.Path
) -> None:
    whole = recording(tmp_path / "whole")
    both = [recording(tmp_path / str(factor), changed_from(1, "loss loss", factor)) for factor in factors]
    assert ranks.compare_with_one(whole, both, 1e-5).first_departure is None
    assert ranks.compare_ranks(both, 1e-5) == []
    for factor, is_found in ((1 + 5e-5, False), (1 + 5e-4, True)):  # the order of a sum, and more than that
        other = [
            recording(tmp_path / f"{factor} {n}", changed_from(1, "gradient second/kernel", factor)) for n in (0, 1)
        ]
        assert (ranks.compare_with_one(whole, other, 1e-5).first_departure is not None) == is_found
    apart = [both[0], recording(tmp_path / "c", changed_from(2, "variable second/kernel", 1.1))]
    [(rank, found)] = ranks.compare_ranks(apart, 1e-5)
    assert (
        rank == 1
        and found.first_departure is not None
        and (found.first_departure.step, found.first_departure.name) == (2, "second/kernel")
    )


def test_bands_hold_equal_means_and_find_others(tmp_path: pathlib.Path) -> None:
    def runs(name: str, shift: float) -> list[Any]:
        return [
            recording(tmp_path / f"{name}{seed}", changed_from(1, "loss loss", shift + 0.02 * seed))
            for seed in range(5)
        ]

    ours = runs("a", 1.0)
    assert all(band.inside for band in seeds.mean_bands(ours, runs("b", 1.01)))
    outside = [band for band in seeds.mean_bands(ours, runs("c", 1.3)) if not band.inside]
    assert [(band.kind, band.name) for band in outside] == [(LOSS, "loss")]
    spread = np.std([0.02 * seed for seed in range(5)], ddof=1) * np.mean([1 / 3, 1 / 4, 1 / 5])
    assert outside[0].band == pytest.approx(3.355 * spread * math.sqrt(2 / 5), rel=1e-3)


@pytest.mark.parametrize("value, is_inside", [(math.nan, True), (0.5, False)])
def test_runs_that_overflow_agree_with_each_other_only(value: float, is_inside: bool, tmp_path: pathlib.Path) -> None:
    overflowed = [recording(tmp_path / str(seed), changed_from(4, "loss loss", math.nan)) for seed in range(2)]
    others = [recording(tmp_path / f"{seed} other", changed_from(4, "loss loss", value)) for seed in range(2)]
    bands = seeds.mean_bands(overflowed, others)
    assert [band.inside for band in bands if band.kind == LOSS] == [is_inside]
    found = verified(tmp_path / "reports", bands=bands)
    written = {pathlib.Path(path).name: path for path in write_reports(found, str(tmp_path / "r"), WRITERS)}
    text = pathlib.Path(written["verify.json"]).read_text(encoding="utf-8")
    assert "NaN" not in text and json.loads(text)["bands"][0]["band"] is None
    cases = {case.get("name"): case for case in xml.etree.ElementTree.parse(written["verify.xml"]).getroot()}
    assert (cases["loss is within its band"].find("failure") is None) == is_inside
    assert "metric evaluate accuracy is within its band" in cases


def test_seeds_of_call_sites_differ() -> None:
    found = {call_site_seed(1, name, number) for name in ("build", "train") for number in range(50)}
    assert len(found) == 100 and call_site_seed(2, "build", 0) not in found


def test_reports_name_the_departure(tmp_path: pathlib.Path) -> None:
    found = verified(tmp_path, changed_from(2, "gradient second/kernel", 1.5))
    assert found.first_departure is not None
    found.first_departure.elements = [Element([3, 1], "0.5", "0.75")]
    text = to_text(found)
    assert "tensors that depart at step 2, the first" in text and text.endswith("The two scripts differ.\n")
    paths = {pathlib.Path(path).name: pathlib.Path(path) for path in write_reports(found, str(tmp_path / "r"), WRITERS)}
    suite = xml.etree.ElementTree.parse(paths["verify.xml"]).getroot()
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["gradient agrees", "migrated script agrees with the original"]
    assert suite.get("failures") == "2" and suite.get("errors") == "0"
    page = paths["verify.html"].read_text(encoding="utf-8")
    assert page.count("<svg") == 2 and "First departure: step 2, gradient second/kernel" in page
    assert not re.search(r"<script|https?://|url\(", page) and "A &lt;problem&gt;." in page
    assert "prefers-color-scheme: dark" in page and "Its elements that differ most" in page
    assert "[3, 1]                     0.5       0.75" in text


def test_elements_of_small_tensors_come_from_their_digests() -> None:
    value = RANDOM.randn(5, 6)
    np.testing.assert_allclose(elements_from_digest(digest(value), (5, 6)), value)
    assert elements_from_digest(digest(RANDOM.randn(32)), (32,)) is None
    assert elements_from_digest(digest(np.array([np.nan, 1.0])), (2,)) is None


def test_the_elements_that_differ_most_come_first() -> None:
    ours = np.arange(24, dtype="f4").reshape(4, 6)
    theirs = ours.copy()
    theirs[1, 2], theirs[3, 5], theirs[0, 0] = 9, np.nan, 0.25
    assert elements.most_different_elements(ours, theirs) == [
        Element([3, 5], "23", "nan"),
        Element([1, 2], "8", "9"),
        Element([0, 0], "0", "0.25"),
    ]
    assert (
        elements.most_different_elements(ours, ours.copy()) == []
        and len(elements.most_different_elements(ours, ours + 1)) == 10
    )


def test_a_kept_value_is_written_as_it_is_and_ends_the_process(tmp_path: pathlib.Path) -> None:
    code = (
        "import sys, numpy as np; from npu_shim.rehearsal.recording.writer import Writer\n"
        "writer = Writer(sys.argv[1], ['loss', 'loss', 2])\n"
        "for n in range(5): writer.write_rows(n, [('loss', 'loss', np.array([n, 7])), ('loss', 'other', np.array(1))])\n"
        "sys.exit(1)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=60).returncode == 0
    assert np.load(tmp_path / KEPT).tolist() == [2, 7]
    assert len(read_recording(str(tmp_path)).streams[LOSS, "loss"].values) == 3


def test_reports_of_equal_runs(tmp_path: pathlib.Path) -> None:
    found = verified(tmp_path)
    assert to_text(found).endswith("The two scripts agree.\n")
    write_reports(found, str(tmp_path / "r"), WRITERS)
    assert "equal, bit by bit" in (tmp_path / "r" / "verify.html").read_text(encoding="utf-8")
    assert xml.etree.ElementTree.parse(tmp_path / "r" / "verify.xml").getroot().get("failures") == "0"


@pytest.mark.parametrize(
    ("line", "name", "numbers"),
    [
        ("epoch 3: loss 0.250", "epoch #: loss #", [(3, 0), (0.25, 1e-3)]),
        ("loss=1.5e-3 acc=.5", "loss=# acc=#", [(1.5e-3, 1e-4), (0.5, 0.1)]),
        ("loss nan", "loss #", None),
        ("step 10 loss 2.5 (3.1 examples/sec; 0.010 sec/batch)", "", [(10, 0), (2.5, 0.1)]),
        ("took 1.5 s, 12 it/s, ETA: 3, 2.5 GB", "", []),
        ("time: 0.5 loss: 0.25, elapsed_time 7", "", [(0.25, 0.01)]),
        ("2024-05-06 10:11:12.345 step 7", "", [(7, 0)]),
        ("logs in ./train/2024-05-06T10-11-12", "logs in ./train/", []),
        ("run_20240506-101112, 20240506_1011, 20240506T101112: 7", "", [(7, 0)]),
        (
            "2016 of 20240599 examples, 2000.0601 and 20125314",
            "",
            [(2016, 0), (20240599, 0), (2000.0601, 1e-4), (20125314, 0)],
        ),
        ("conv2d v2.15.1 <object at 0x7f12> 10ms 3ms/step", "", []),
        ("10/10\r", "", []),
        (" ".join(map(str, range(17))), "", []),
        ("learning rate 0.1, momentum 0.9", "", [(0.1, 0.1), (0.9, 0.1)]),
    ],
)
def test_numbers_of_printed_lines(line: str, name: str, numbers: Any) -> None:
    found = name_and_numbers_of(line)
    assert found[0] == name or not name
    if numbers is None:
        assert math.isnan(found[1][0][0])
    else:
        assert [value for each in found[1] for value in each] == pytest.approx([v for each in numbers for v in each])


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [
        ("loss 0.1234", "loss 0.1235", False),
        ("loss 0.1234", "loss 0.1236", True),
        ("seen 400", "seen 399", True),
        ("loss 0.12345678", "loss 0.12345689", False),
        ("norm 3.2e-10", "norm 2.9e-10", False),
        ("loss nan", "loss 1", True),
        ("loss nan", "loss nan", False),
    ],
)
def test_printed_numbers_are_compared_up_to_their_last_digit(one: str, other: str, differs: bool) -> None:
    digests = []
    for line in (one, other):
        [number] = name_and_numbers_of(line)[1]
        digests.append(digest(np.array(number)))
    assert (printed_difference(*digests) > allowed_difference("float64", PRINT, 1)) == differs


def test_seeds_from_the_clock() -> None:
    now = time.time()
    for value in (now, int(now), int(now * 1e3), int(now * 1e6), time.time_ns(), int(now * 1e3) % 2**32):
        assert is_from_clock(value)
    for value in (0, 42, 1234, 20240506, 2**31 - 1, int(now) - 86400, "now", None, True):
        assert not is_from_clock(value)


def scaled(kind: str, step: int, factor: float) -> Any:
    """Return a change of one kind from a step on."""

    def change(at: int, its: str, name: str, value: np.ndarray) -> np.ndarray:
        return np.asarray(value * np.float32(factor)) if its == kind and at >= step else value

    return change


@pytest.mark.parametrize(
    ("migrated", "again", "departs"),
    [
        (scaled(INPUT, 1, 1.5), scaled(INPUT, 1, 1.2), (1, INPUT)),  # another order each time
        (scaled(GRADIENT, 3, 1.5), scaled(INPUT, 2, 1.2), (2, INPUT)),
        (scaled(LOSS, 3, 1.01), scaled(INPUT, 4, 1.2), None),  # later than the defect
        (scaled(LOSS, 3, 1.01), scaled(LOSS, 3, 1 + 5e-7), None),  # rounding, and a defect
        (scaled(LOSS, 3, 1 + 3e-5), scaled(LOSS, 3, 1 + 8e-6), (3, LOSS)),  # rounding, and more of it
    ],
)
def test_a_departure_from_itself_explains_the_comparison(
    migrated: Any, again: Any, departs: Any, tmp_path: pathlib.Path
) -> None:
    ours, theirs, itself = (
        recording(tmp_path / name, change)
        for name, change in (("ours", unchanged), ("theirs", migrated), ("again", again))
    )
    found = reproducing.departure_from_itself(compare_recordings(ours, theirs), ours, itself, 1e-5)
    assert (found and (found.step, found.kind)) == departs


def test_a_second_run_that_ends_before_the_last_final_variables_is_no_departure(tmp_path: pathlib.Path) -> None:
    """The script restores its best weights after the training, and so after the departure."""

    def run(name: str, loss: float, *finals: float) -> Recording:
        (tmp_path / name).mkdir()
        recorder = Recorder(Writer(str(tmp_path / name)))
        recorder.record_update(0, [(LOSS, "loss", np.float32(loss)), (GRADIENT, "kernel", np.ones(3))])
        for value in finals:
            recorder.record_final_variables([("kernel", np.float32(value))])
        return read_recording(str(tmp_path / name))

    ours = run("original", 1.0, 5.0, 4.0)
    found = compare_recordings(ours, run("migrated", 1.1, 5.0, 4.0))
    assert reproducing.departure_from_itself(found, ours, run("again", 1.0, 5.0), 1e-5) is None
    assert reproducing.departure_from_itself(found, ours, run("other", 1.0, 5.0, 3.0), 1e-5) is not None


def test_an_accuracy_pairs_with_that_of_tensorflow_1(tmp_path: pathlib.Path) -> None:
    def run(name: str) -> Recording:
        folder = tmp_path / name.replace(" ", "_")
        folder.mkdir()
        Recorder(Writer(str(folder))).record_values(METRIC, [("evaluate loss", np.float32(1)), (name, np.float32(0.5))])
        return read_recording(str(folder))

    found = compare_recordings(run("evaluate acc"), run("evaluate accuracy"))
    assert found.departures == [] and len(found.compared) == 2


def test_a_rate_that_varies_does_not_explain_a_gradient_that_one_script_lacks(tmp_path: pathlib.Path) -> None:
    ours, again, lacking = (recording(tmp_path / name) for name in ("ours", "again", "lacking"))
    varying = recording(tmp_path / "varying", scaled(RATE, 1, 1.5))
    del lacking.streams[GRADIENT, lacking.streams_of_kind(GRADIENT)[0].name]
    found = compare_recordings(ours, lacking)
    assert found.first_departure is not None and (found.first_departure.kind, found.first_departure.number) == (
        GRADIENT,
        None,
    )
    assert reproducing.departure_from_itself(found, ours, again, 1e-5) is None
    assert reproducing.departure_from_itself(found, ours, varying, 1e-5) is None
    earlier = recording(tmp_path / "earlier", scaled(INPUT, 1, 1.5))
    assert reproducing.departure_from_itself(found, ours, earlier, 1e-5) is not None


def test_the_cause_of_a_departure_from_itself_is_named(tmp_path: pathlib.Path) -> None:
    ours, again = recording(tmp_path / "ours"), recording(tmp_path / "again", scaled(INPUT, 1, 1.5))
    ours.lines["input", "batch 0"] = "train.py:7"
    ours.seeds, again.seeds = [("numpy.random.seed", "1", "train.py:3")], [("numpy.random.seed", "2", "train.py:3")]
    found = reproducing.departure_from_itself(compare_recordings(ours, again), ours, again, 1e-5)
    assert found is not None
    first, second = reproducing.departure_sentences(found)
    assert first.startswith("The original departs from itself at step 1: input 'batch 0', norm ")
    assert first.endswith(", at train.py:7.")
    assert second.startswith("numpy.random.seed gets 1 and 2 at train.py:3, from the clock or the system. Change ")
    again.seeds, ours.notes.queue_thread = ours.seeds, "train.py:9"
    found = reproducing.departure_from_itself(compare_recordings(ours, again), ours, again, 1e-5)
    assert found is not None and found.cause and "fills a queue at train.py:9" in found.cause
    ours.notes.queue_thread = None
    again = recording(tmp_path / "racing", scaled(LOSS, 1, 1.5))
    assert not ours.notes.may_vary and not again.notes.may_vary
    again.notes.racing_update = "train.py:8"
    found = reproducing.departure_from_itself(compare_recordings(ours, again), ours, again, 1e-5)
    assert (
        found is not None
        and found.cause
        and found.cause.startswith("The update at train.py:8 writes variables while the same ")
    )
    assert again.notes.may_vary


def test_printed_lines_depart_last_and_those_that_the_original_does_not_repeat_are_dropped(
    tmp_path: pathlib.Path,
) -> None:
    recordings = []
    for number, (accuracy, other) in enumerate(((0.5, 1.0), (0.6, 2.0), (0.5, 3.0))):
        folder = tmp_path / str(number)
        folder.mkdir()
        recorder = Recorder(Writer(str(folder)))
        rows = [("accuracy #", accuracy), ("other #", other), ("23:45 #", other)]
        recorder.record_values(PRINT, [(name, np.array([value, 0.01])) for name, value in rows[: 2 + (number < 2)]])
        recorder.record_update(0, [(LOSS, "loss", np.float32(1 + 0.3 * number))])
        recordings.append(read_recording(str(folder)))
    found = compare_recordings(recordings[0], recordings[1])
    assert [each.kind for each in found.departures] == [LOSS, PRINT, PRINT, PRINT]
    assert reproducing.drop_varying_prints(found, recordings[0], recordings[2], 1e-5) == ["23:45 #", "other #"]
    assert [each.name for each in found.departures] == ["loss", "accuracy #"]


def test_a_run_until_a_step_ends_before_the_next(tmp_path: pathlib.Path) -> None:
    code = (
        "import numpy, sys; from npu_shim.rehearsal.recording.writer import Writer; w = Writer(sys.argv[1], None, 2)\n"
        "for step in (1, 2, 3): w.write_rows(step, [('loss', 'loss', numpy.float32(step))])\nprint('not reached')"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    assert [value.step for value in read_recording(str(tmp_path)).streams["loss", "loss"].values] == [1, 2]
