"""Errors on the other ranks if one dies, stalls, joins late or is a duplicate. Nothing hangs, and nothing is left."""

from __future__ import annotations

import functools
import os
import random
import re
import signal
import time

import pytest

from tests.distributed.conftest import Failed, directory_of, wait_for

pytestmark = pytest.mark.once

FOREVER = """
    import itertools
    for step in itertools.count():
        world.allreduce(np.ones(sizes[step % len(sizes)], np.float32), key="gradient %d" % (step % 3))
    """
SIZES = [1, 300, 100_000, 3_000_000]


def pid(ranks, rank):
    return ranks.ranks[rank].process.pid


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_rank_killed_in_a_collective_is_named(ranks_of, size, seed):
    """The other ranks raise at once, long before a timeout."""
    chance = random.Random(f"{size} {seed}")
    ranks = ranks_of(size)
    ranks.start(FOREVER, sizes=SIZES)
    time.sleep(chance.uniform(0, 0.2))
    victim = chance.randrange(size)
    ranks.kill(victim)
    for other in ranks.ranks:
        if other.rank != victim:
            result = other.result()
            assert result.kind == "PeerLost" and f"rank {victim} (process {pid(ranks, victim)})" in result.text


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_rank_killed_in_the_rendezvous_is_named(ranks_of, size, seed):
    chance = random.Random(f"{size} {seed}")
    ranks = ranks_of(size, join=False, connect_timeout_s=10)  # more than a busy machine needs to start a rank
    time.sleep(chance.uniform(0, 1))
    victim = chance.randrange(size)
    ranks.kill(victim)
    for other in ranks.ranks:
        if other.rank != victim:
            result = other.result()
            if result is None:  # all had joined; the first collective raises
                other.send("world.barrier(key='first')", {})
                result = other.result()
            assert isinstance(result, Failed) and f"rank {victim}" in result.text, result


def test_rank_killed_after_it_registered_is_named_at_once(ranks_of):
    """Although another rank is still missing."""
    ranks = ranks_of(3, join=False, only=[0, 1], connect_timeout_s=100)
    wait_for(lambda: any(map(is_registered, directory_of(ranks.job).glob("s-*"))))
    ranks.kill(1)
    result = ranks.ranks[0].result(30)
    assert result.kind == "PeerLost" and f"rank 1 (process {pid(ranks, 1)}) died before" in result.text


def is_registered(path):
    """Return True if rank 1 has registered in a segment."""
    from npu_shim.distributed.shm.segment import INCARNATION, Segment

    try:
        segment = Segment.open(str(path))
    except FileNotFoundError:
        return False
    return segment.words[segment.first_word_of_page(1) + INCARNATION] != 0


def test_error_names_rank_process_and_collective(ranks_of):
    ranks = ranks_of(3)
    ranks.start(FOREVER, sizes=[1000])
    time.sleep(0.3)
    ranks.kill(2)
    for rank in (0, 1):
        result = ranks.ranks[rank].result()
        assert result.kind == "PeerLost"
        assert f"rank 2 (process {pid(ranks, 2)}) died" in result.text


def test_later_collectives_raise_the_same_error(ranks_of):
    ranks = ranks_of(2)
    ranks.ranks[0].send("world.allreduce(np.ones(3), key='a')", {})
    ranks.kill(1)
    first = ranks.ranks[0].result()
    assert first.text == (f"a (allreduce sum of float64[3]) cannot complete: rank 1 (process {pid(ranks, 1)}) died.")
    ranks.ranks[0].send("world.broadcast(np.ones(3), root=0, key='b')", {})
    assert ranks.ranks[0].result(1) == first


def test_exit_of_a_rank_is_distinguished_from_death(ranks_of):
    ranks = ranks_of(2)
    ranks.ranks[1].end()
    ranks.ranks[0].send("world.allreduce(np.ones(3), key='loss')", {})
    text = ranks.ranks[0].result().text
    assert f"rank 1 (process {pid(ranks, 1)}) has exited (its script finished)" in text


def test_exit_with_an_error_is_reported_with_the_error(ranks_of):
    ranks = ranks_of(2)
    ranks.ranks[0].send("world.allreduce(np.ones(3), key='loss')", {})
    ranks.ranks[1].send(
        """if True:
        import sys
        sys.last_value = FileNotFoundError(2, "No such file", "train.csv")
        backend.close()
        """,
        {},
    )
    text = ranks.ranks[0].result().text
    assert "has exited with FileNotFoundError: [Errno 2] No such file: 'train.csv'" in text


def test_uncaught_error_of_a_script_reaches_the_other_ranks(tmp_path, repo_root):
    """Run a real script that joins and raises."""
    import subprocess
    import sys

    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom npu_shim.distributed import shm\nimport numpy as np\n"
        "rank = int(sys.argv[1])\nbackend = shm.join_job(rank, 2, sys.argv[2])\n"
        "if rank:\n    open('/no/such/data.csv')\n"
        "backend.world.allreduce(np.ones(2), key='loss')\n"
    )
    job = f"test-{os.getpid()}-script"
    env = {**os.environ, "PYTHONPATH": str(repo_root)}
    done = [
        subprocess.Popen(
            [sys.executable, str(script), str(r), job], stderr=subprocess.PIPE, env=env, universal_newlines=True
        )
        for r in range(2)
    ]
    errors = [process.communicate(timeout=60)[1] for process in done]
    assert [process.returncode for process in done] == [1, 1]
    assert "has exited with FileNotFoundError: [Errno 2] No such file or directory: '/no/such/data.csv'" in errors[0]
    assert not directory_of(job).exists()


def test_stall_names_present_and_missing_ranks(ranks_of):
    """Rank 2 is in another collective, rank 1 in none."""
    ranks = ranks_of(3, stall_timeouts=[1, 60, 60])
    ranks.ranks[2].send("world.allgather(np.ones(3), key='gradient of b')", {})
    ranks.ranks[0].send("wait_for_pending(2)\nworld.allreduce(np.ones(3), key='gradient of w')", {})
    results = [ranks.ranks[rank].result() for rank in (0, 2)]
    ranks.ranks[1].send("world.allreduce(np.ones(3), key='gradient of w')", {})  # when it is over
    for result in results + [ranks.ranks[1].result()]:
        assert result == Failed(
            "Stalled",
            (
                "gradient of w (allreduce sum of float64[3]) stalled for 1 s. Reached by rank 0 (process "
                f"{pid(ranks, 0)}). Not reached by:\n  rank 1 (process {pid(ranks, 1)}), in no collective\n"
                f"  rank 2 (process {pid(ranks, 2)}), waiting for gradient of b"
            ),
        )


def test_stall_names_the_line_of_the_script_that_a_missing_rank_is_at(ranks_of):
    where = functools.partial(str, "at /home/me/train.py:33 in load")
    ranks = ranks_of(2, stall_timeouts=[1, 60], where=where)
    ranks.ranks[0].send("world.allreduce(np.ones(3), key='gradient of w')", {})
    assert (
        ranks.ranks[0]
        .result()
        .text.endswith(f"  rank 1 (process {pid(ranks, 1)}), at /home/me/train.py:33 in load, in no collective")
    )


def test_stall_in_the_middle_of_a_collective_names_the_line_of_the_script(ranks_of):
    ranks = ranks_of(2, stall_timeouts=[1, 60], where=functools.partial(str, "at train.py:33 in load"))
    results = ranks.attempt("""
        if rank == 1:
            import time
            from npu_shim.distributed.shm.barrier import Barrier
            Barrier.wait = lambda barrier: time.sleep(2)
        world.allreduce(np.ones(3), key='a')
        """)
    stopped = f"rank 1 (process {pid(ranks, 1)}) stopped in the middle of a collective for 1 s, at train.py:33 in load."
    assert results[0].kind == "Stalled" and stopped in results[0].text


def test_deadlock_is_reported(ranks_of):
    ranks = ranks_of(2, stall_timeouts=[60, 1])
    results = ranks.attempt("""
        if rank == 1:
            wait_for_pending(0)
        for key in ('ab', 'ba')[rank]:
            world.allreduce(np.ones(3), key=key)
        """)
    for result in results:
        assert result.kind == "Stalled" and "Deadlock: each rank waits in a collective" in result.text


def test_stopped_rank_is_named(ranks_of):
    ranks = ranks_of(2, stall_timeouts=[3, 60], where=functools.partial(str, "at train.py:1"))
    ranks.start(FOREVER, sizes=[100_000])
    time.sleep(0.3)
    ranks.kill(1, signal.SIGSTOP)
    result = ranks.ranks[0].result()
    ranks.kill(1, signal.SIGCONT)
    assert result.kind == "Stalled" and f"rank 1 (process {pid(ranks, 1)})" in result.text
    assert ranks.ranks[1].result() == result
    assert "without an answer: its process is stopped, or runs C code" in result.text


def test_rank_that_does_not_join_is_named(ranks_of):
    ranks = ranks_of(3, join=False, only=[0, 2], connect_timeout_s=5)
    for result in ranks.joined():
        assert result.kind == "Stalled" and result.text.startswith("rank 1 did not join within 5 s")


def test_missing_rank_0_is_named(ranks_of):
    ranks = ranks_of(3, join=False, only=[1, 2], connect_timeout_s=1)
    for result in ranks.joined():
        assert result.kind == "Stalled" and re.match("ranks? 0(, [12])? did not join within 1 s", result.text)


def test_ranks_may_join_late(ranks_of):
    early = ranks_of(3, join=False, only=[1])
    time.sleep(0.7)
    ranks_of(3, join=False, job=early.job, only=[2])
    time.sleep(0.7)
    last = ranks_of(3, join=False, job=early.job, only=[0])
    assert early.joined() + last.joined() == [None, None]


def test_different_sizes_are_reported(ranks_of):
    first = ranks_of(2, join=False, only=[0])
    second = ranks_of(3, join=False, job=first.job, only=[1])
    mine, theirs = first.joined()[0], second.joined()[0]
    assert mine == theirs and mine.kind == "Mismatch"
    assert mine.text == (
        f"rank 0 (process {pid(first, 0)}) was started for 2 ranks, rank 1 (process {pid(second, 0)}) for 3. Give "
        "every rank the same RANK_SIZE and rank table."
    )


def test_second_process_of_a_rank_is_rejected(ranks_of):
    """Two jobs with one JOB_ID do not mix; the first one continues."""
    ranks = ranks_of(2)
    second = ranks_of(2, join=False, job=ranks.job)
    for rank, result in enumerate(second.joined()):
        assert result.kind == "RankTaken"
        prefix = f"rank {rank} of job {ranks.job!r} is already running (process {pid(ranks, rank)} holds "
        assert result.text.startswith(prefix) and "set another JOB_ID" in result.text
    assert ranks.run("result = int(world.allreduce(np.int32(1), key='k'))") == [2, 2]


def test_process_cannot_join_twice(ranks_of):
    ranks = ranks_of(2)
    results = ranks.attempt("join()")
    assert all(a.kind == "RankTaken" and "this process itself" in a.text for a in results)
    assert ranks.run("result = int(world.allreduce(np.int32(1), key='k'))") == [2, 2]


def test_new_run_starts_while_the_old_one_is_dying(ranks_of):
    """The new rank 1 does not join the old rank 0, which is alive for a while."""
    old = ranks_of(2)
    old.kill(1)
    old.ranks[1].process.join()
    new = ranks_of(2, join=False, job=old.job, only=[1], connect_timeout_s=30)
    time.sleep(0.5)
    old.kill(0)
    old.ranks[0].process.join()
    root = ranks_of(2, join=False, job=old.job, only=[0])
    assert new.joined() + root.joined() == [None, None]


def test_files_of_a_killed_job_are_empty_and_removed_by_the_next_job(ranks_of, tmp_path):
    ranks = ranks_of(2, base=str(tmp_path))  # where no other job of this user cleans up
    ranks.run("world.allreduce(np.ones(1_000_000), key='k')")
    for rank in range(2):
        ranks.kill(rank)
        ranks.ranks[rank].process.join()
    left = tmp_path / directory_of(ranks.job).name
    assert sorted(p.name for p in left.iterdir()) == ["rank_0", "rank_1"]
    assert all(p.stat().st_size < 200 for p in left.iterdir())
    ranks_of(2, base=str(tmp_path))  # another job
    assert not left.exists()


def test_forked_child_neither_keeps_nor_ends_the_job(ranks_of):
    ranks = ranks_of(2)
    children = ranks.run("""
        import os, time
        child = os.fork()
        if not child:
            try:
                world.barrier(key="child")
            except errors.CollectiveError as error:
                os._exit(7 if "forked" in str(error) else 1)
        result = os.waitpid(child, 0)[1] >> 8
        """)
    assert children == [7, 7]
    assert ranks.run("result = int(world.allreduce(np.int32(1), key='k'))") == [2, 2]
    child = ranks.run("""
        result = os.fork()
        if not result:
            backend.close()
            time.sleep(60)
            os._exit(0)
        """)[1]
    assert ranks.run("result = int(world.allreduce(np.int32(1), key='k'))") == [2, 2]
    ranks.kill(1)
    ranks.ranks[0].send("world.barrier(key='b')", {})
    assert f"rank 1 (process {pid(ranks, 1)}) died" in ranks.ranks[0].result().text  # although its child is alive
    ranks.ranks[0].send("os.kill(result, 9)", {})
    ranks.ranks[0].result()
    os.kill(child, signal.SIGKILL)


def test_keyboard_interrupt_of_one_rank_reaches_the_others(ranks_of):
    ranks = ranks_of(3)
    ranks.start("""
        try:
            if rank < 2:
                world.allreduce(np.ones(3), key='a')
            else:
                wait_for_pending(0), wait_for_pending(1)
        except KeyboardInterrupt:
            result = "interrupted"
        """)
    assert ranks.ranks[2].result() is None
    ranks.kill(0, signal.SIGINT)
    assert ranks.ranks[0].result() == "interrupted"
    result = ranks.ranks[1].result()
    assert f"a (allreduce sum of float64[3]): rank 0 (process {pid(ranks, 0)}) failed: KeyboardInterrupt" in result.text


def test_too_little_shared_memory_raises(ranks_of):
    """Request slots that are larger than the memory of any machine."""
    ranks = ranks_of(2, join=False, chunk_bytes=1 << 40)
    texts = {a.text for a in ranks.joined()}
    assert len(texts) == 1 and re.search(
        r"2 ranks need 41943\d\d MB of shared memory, which is not available", texts.pop()
    )


def test_directory_of_another_user_is_not_used(tmp_path, monkeypatch):
    from npu_shim.distributed.collectives.errors import CollectiveError
    from npu_shim.distributed.shm import rank_lock

    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(CollectiveError, match="is not a directory of user"):
        rank_lock.make_directory(str(tmp_path / "link"))


def test_job_id_may_be_any_string(ranks_of):
    ranks = ranks_of(2, job="a job/../with ünusual *characters*" + "x" * 500)
    assert ranks.run("result = int(world.allreduce(np.int32(1), key='k'))") == [2, 2]
