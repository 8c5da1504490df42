"""Several processes: how files are shared out, and that they give the results of one process."""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import threading
import time

import pytest
from convert_tf2npu.engine import pool
from convert_tf2npu.engine.converter import make_project
from convert_tf2npu.engine.pool import Converting, convert_files, split_into_pieces
from convert_tf2npu.engine.results import FileResult
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.files.errors import UsageError
from convert_tf2npu.project.project import Project

pytestmark = pytest.mark.once

FORK = pytest.mark.parametrize("fork", [True, False], ids=["copied", "started anew"])


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize(
    "sizes",
    [
        [1000] * 50,
        [0] * 9,
        [3_000_000],
        [1, 2],
        [],
        [5_000_000] + [10] * 100,
        [10] * 100 + [5_000_000],
        list(range(0, 900_000, 9001)),
    ],
    ids=["equal", "empty files", "one", "two", "none", "a large one first", "a large one last", "growing"],
)
def test_each_file_is_in_one_piece_in_the_order_of_the_list(sizes: list[int], count: int) -> None:
    found = split_into_pieces(sizes, count)
    assert [place for piece in found for place in piece] == list(range(len(sizes)))
    assert len(found) <= count and all(found)


def test_pieces_are_of_the_same_size() -> None:
    assert split_into_pieces([10] * 4 + [40], 2) == [range(0, 4), range(4, 5)]
    assert [len(piece) for piece in split_into_pieces([30_000] * 400, 16)] == [25] * 16


def test_a_process_with_threads_is_not_copied() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert not pool.may_fork()
    finally:
        stop.set()
        thread.join()


def project(tmp_path: pathlib.Path) -> tuple[list[str], Converting]:
    """Files of each kind: converted, imported, unreadable, without TensorFlow, gone."""
    texts = {"compat.py": "import tensorflow as tf\n", "old.py": 'print "x"\n', "plain.py": "x = 1\n", "gone.py": ""}
    texts.update((f"train{number}.py", "from compat import tf\nsess = tf.Session()\n") for number in range(12))
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    paths = sorted(str(path) for path in tmp_path.iterdir())
    converting = Settings(), make_project(Settings(), paths), True
    (tmp_path / "gone.py").unlink()
    return paths, converting


@FORK
def test_processes_give_the_results_of_one(fork: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths, converting = project(tmp_path)
    monkeypatch.setattr(pool, "may_fork", lambda: fork)
    one: dict[int, FileResult] = dict(convert_files(paths, converting, 1))
    assert not multiprocessing.active_children()
    several = convert_files(paths, converting, 3)
    found = dict([next(several)])
    assert 1 <= len(multiprocessing.active_children()) <= 3
    found.update(several)
    assert found == one and not multiprocessing.active_children()
    assert sorted(one) == list(range(len(paths))) and sum(result.new is not None for result in one.values()) == 12


@FORK
def test_a_process_that_is_killed_ends_the_run(
    fork: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, converting = project(tmp_path)
    monkeypatch.setattr(pool, "may_fork", lambda: fork)

    class Killed:
        """Work that kills the process which gets it."""

        def __reduce__(self) -> tuple[object, ...]:
            return os._exit, (3,)

    monkeypatch.setattr(pool, "split_into_pieces", lambda sizes, count: [*split_into_pieces(sizes, count), Killed()])
    with pytest.raises(
        UsageError,
        match="a worker process was killed, probably because memory ran out. Nothing was written; try again with -j 1",
    ):
        list(convert_files(paths, converting, 2))
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_process_knows_how_many_share_the_memory(
    jobs: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, converting = project(tmp_path)
    (tmp_path / "shares").mkdir()
    monkeypatch.setattr(pool, "may_fork", lambda: True)
    monkeypatch.setattr(
        Project, "share_memory", lambda _, number: (tmp_path / "shares" / f"{number} {os.getpid()}").touch()
    )
    list(convert_files(paths, converting, jobs))
    assert {path.name.split()[0] for path in (tmp_path / "shares").iterdir()} == {str(jobs)}


@FORK
def test_a_run_that_is_given_up_leaves_no_process(
    fork: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, converting = project(tmp_path)
    monkeypatch.setattr(pool, "may_fork", lambda: fork)
    own = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,), daemon=True)
    own.start()
    try:
        several = convert_files(paths, converting, 2)
        next(several)
        several.close()
        assert multiprocessing.active_children() == [own]
    finally:
        own.kill()
        own.join()
