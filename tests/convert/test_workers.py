"""Several processes: which gets what, how they are started, and that they come to what one comes to."""

from __future__ import annotations

import os
import pathlib
import random
import threading

import pytest
from convert_tf2npu.cli.config import Settings
from convert_tf2npu.engine import parts, processes, workers
from convert_tf2npu.engine.converter import project_of
from convert_tf2npu.engine.parts import in_parts
from convert_tf2npu.engine.processes import Channel
from convert_tf2npu.engine.results import FileResult
from convert_tf2npu.engine.shares import Shares, equal
from convert_tf2npu.engine.workers import converted
from convert_tf2npu.files.errors import UsageError


def given(shares: Shares, order: list[int]) -> dict[int, list[range]]:
    """What each process gets, when they ask in an order and go on until there is nothing left."""
    found: dict[int, list[range]] = {number: [] for number in order}
    while order:
        for number in list(order):
            piece = shares.next(number)
            if piece:
                found[number].append(piece)
            else:
                order = [other for other in order if other != number]
    return found


@pytest.mark.parametrize("processes_", [1, 2, 3, 8])
@pytest.mark.parametrize(
    "sizes",
    [
        [1000] * 50,
        [0] * 9,
        [3_000_000],
        [1, 2],
        [5_000_000] + [10] * 100,
        [10] * 100 + [5_000_000],
        list(range(0, 900_000, 9001)),
    ],
    ids=["equal", "empty files", "one", "two", "a large one first", "a large one last", "growing"],
)
def test_each_file_is_given_to_one_process(sizes: list[int], processes_: int) -> None:
    chosen = random.Random(7)
    order = [chosen.randrange(processes_) for _ in range(40)] + list(range(processes_))
    shares = Shares(sizes, processes_)
    pieces = [shares.next(number) for number in order]
    pieces += [piece for each in given(shares, list(range(processes_))).values() for piece in each]
    assert sorted(place for piece in pieces for place in piece) == list(range(len(sizes)))


def test_each_process_gets_neighbours_in_their_order() -> None:
    found = given(Shares([100_000] * 64, 2), [0, 1])
    assert [place for piece in found[0] for place in piece] == list(range(32))
    assert [place for piece in found[1] for place in piece] == list(range(32, 64))


def test_who_has_nothing_left_takes_half_of_what_another_one_has() -> None:
    shares = Shares([100_000] * 64, 2)
    own = []
    while not own or own[-1].stop < 32:
        own.append(shares.next(0))
    taken = shares.next(0)
    assert taken.start == 48
    rest = given(shares, [0, 1])
    assert rest[1][0].start == 32


def test_pieces_get_smaller_so_that_all_end_together() -> None:
    sizes = [len(piece) for piece in given(Shares([30_000] * 400, 2), [0, 1])[0]]
    assert sizes[0] > 10 * sizes[-1] == 10 and sizes == sorted(sizes, reverse=True)


def test_messages_of_any_size_pass_a_channel() -> None:
    (reads, writes), (other_reads, other_writes) = os.pipe(), os.pipe()
    here, there = Channel(reads, other_writes), Channel(other_reads, writes)
    messages = [b"", b"x", bytes(range(256)) * 4000]
    sender = threading.Thread(target=lambda: [there.send_bytes(message) for message in messages])
    sender.start()
    assert [here.recv_bytes() for _ in messages] == messages
    sender.join()
    there.close()
    with pytest.raises(EOFError):
        here.recv_bytes()
    with pytest.raises(BrokenPipeError):
        here.send_bytes(b"x")
    here.close()


def test_a_process_with_threads_is_not_copied() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert not processes.may_fork()
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("fork", [True, False], ids=["copied", "started anew"])
def test_processes_come_to_what_one_comes_to(
    fork: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"compat.py": "import tensorflow as tf\n", "old.py": 'print "x"\n', "plain.py": "x = 1\n", "gone.py": ""}
    texts.update((f"train{number}.py", "from compat import tf\nsess = tf.Session()\n") for number in range(12))
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    paths = sorted(str(path) for path in tmp_path.iterdir())
    converting = Settings(), project_of(Settings(), paths), True
    (tmp_path / "gone.py").unlink()
    for module in (parts, processes, workers):
        monkeypatch.setattr(module, "may_fork", lambda: fork)
    asked: list[tuple[int, int]] = []
    real = workers._Pool._give

    def give(pool: workers._Pool, number: int) -> bool:
        asked.append((os.getpid(), number))
        return real(pool, number)

    monkeypatch.setattr(workers._Pool, "_give", give)
    one: dict[int, FileResult] = dict(converted(paths, converting, 1))
    assert not asked
    assert dict(converted(paths, converting, 3)) == one and set(asked) == {(os.getpid(), n) for n in range(3)}
    assert sorted(one) == list(range(len(paths))) and sum(result.new is not None for result in one.values()) == 12


def test_a_process_that_ends_while_it_reads_imports_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "may_fork", lambda: True)
    here = os.getpid()

    def work(number: int) -> int:
        return number * 2 if os.getpid() == here or number < 3 else os._exit(3)

    assert in_parts(work, [(1,), (2,), (0,)]) == [2, 4, 0]
    with pytest.raises(UsageError, match="was ended from outside; nothing was written"):
        in_parts(work, [(1,), (2,), (3,)])
    monkeypatch.setattr(parts, "may_fork", lambda: False)
    assert in_parts(work, [(1,), (3,)]) == [2, 6]


def test_shares_are_of_the_same_size() -> None:
    assert equal([10] * 4 + [40], 2) == [range(0, 4), range(4, 5)] and equal([], 2) == [range(0, 0)] * 2
    assert [len(each) for each in equal([5] * 3, 7)].count(1) == 3
