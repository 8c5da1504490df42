"""The files of an NPUEstimator on two ranks, from which each rank can go on."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any, Dict, List, Tuple

import pytest
import tensorflow as tf

from npu_shim import npu_init
from tests.distributed.conftest import IS_NIGHTLY
from tests.distributed.test_training import SCRIPTS, forked
from tests.marks import OF_VERSION_1

pytestmark = OF_VERSION_1
WAYS = ["shared", "train_and_evaluate", "one_saves", "own_folders"] + IS_NIGHTLY * ["seconds"]
HAS_ESTIMATOR = hasattr(tf.compat.v1, "estimator")
# What else there is to say of NPUEstimator where TensorFlow has no Estimators is said in test_training.py.
Found = Tuple[pathlib.Path, List[Dict[str, Any]]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: Any) -> Found:
    """The folder of the runs, and what each rank comes to."""
    folder: pathlib.Path = tmp_path_factory.mktemp("files")
    forked(2, str(SCRIPTS / "estimator_files.py"), str(folder), *WAYS, folder=folder)
    return folder, [json.loads((folder / f"rank_{rank}_of_2.json").read_text()) for rank in (0, 1)]


def written(folder: pathlib.Path, pattern: str) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.glob(pattern))


def events(folder: pathlib.Path) -> dict[str, int]:
    """Return the number of summary values in the event files of each folder below this one; all have to be whole."""
    count: dict[str, int] = {}
    for path in folder.rglob("events.out.*"):
        place = str(path.parent.relative_to(folder))
        values = [value for event in tf.compat.v1.train.summary_iterator(str(path)) for value in event.summary.value]
        count[place] = count.get(place, 0) + sum(value.tag == "weight" for value in values)
    return count


if HAS_ESTIMATOR:

    @pytest.mark.parametrize("way", [way for way in WAYS if way != "one_saves"])
    def test_all_ranks_see_one_result(way: str, found: Found) -> None:
        first, second = (dict(rank[way]) for rank in found[1])
        exported = first.pop("exported"), second.pop("exported")
        assert first == second
        assert first["step"] == 25 and first["rows"] == 64
        assert first["guesses"][0] == pytest.approx(-first["w"], rel=1e-5)
        assert first["error"] == pytest.approx(abs(first["w"] - 3) * 32.507 / 64, rel=1e-3)
        assert exported[0] != exported[1]
        for name in exported:
            assert (found[0] / name / "saved_model.pb").exists()

    @pytest.mark.parametrize("way, checkpoints", [("shared", [0, 10, 15, 25]), ("train_and_evaluate", [0, 10, 20, 25])])
    def test_one_rank_writes_the_checkpoints_of_a_folder(way: str, checkpoints: list[int], found: Found) -> None:
        folder = found[0] / (way + "_of_2")
        assert sorted(int(re.findall(r"\d+", name)[0]) for name in written(folder, "model.ckpt-*.index")) == checkpoints
        assert written(folder, ".npu_shim*") == []
        assert sorted(events(folder)) == [".", "eval", "eval/rank_1", "rank_1"]

    def test_each_rank_writes_into_a_folder_of_its_own(found: Found) -> None:
        for rank in (0, 1):
            folder = found[0] / "own_folders_of_2" / str(rank)
            assert len(written(folder, "model.ckpt-*.index")) == 4
            assert found[1][rank]["own_folders"]["waits"] < found[1][rank]["shared"]["waits"]

    def test_event_files_of_ranks_are_apart_and_whole(found: Found) -> None:
        values = events(found[0] / "shared_of_2")
        assert values["."] == values["rank_1"] == 5

    def test_exports_while_training_are_apart(found: Found) -> None:
        folder = found[0] / "train_and_evaluate_of_2" / "export" / "final"
        assert (
            len(written(folder, "[0-9]*/saved_model.pb")) == len(written(folder, "rank_1/[0-9]*/saved_model.pb")) == 1
        )

    def test_a_rank_that_saves_nothing_leaves_saving_to_the_other(found: Found) -> None:
        folder = found[0] / "one_saves_of_2"
        assert len(written(folder, "model.ckpt-*.index")) == 4 and found[1][0]["one_saves"]["step"] == 25

else:

    def test_there_is_one_error_where_tensorflow_has_no_estimators() -> None:
        with pytest.raises(RuntimeError, match="needs tf.estimator"):
            npu_init.NPUEstimator(None)
