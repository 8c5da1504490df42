"""Ranks on several hosts over MPI: errors name the ranks of all hosts, and the job ends. The hosts are one machine."""

from __future__ import annotations

import functools
import pathlib
import signal
import subprocess
import sys
from typing import Any, Callable, Iterator

import numpy as np
import pytest

from tests.distributed import mpi_ranks
from tests.distributed.conftest import Failed, Ranks

NAMES = {rank: name for rank, name in enumerate("aabb")}


@pytest.fixture
def ranks_of() -> Iterator[Callable[..., Ranks]]:
    """Yield a function ranks_of(size, ...) that starts ranks on two hosts."""
    started: list[Ranks] = []

    def start(size: int, **options: Any) -> Ranks:
        started.append(Ranks(size, "mpi", **options))
        assert started[-1].joined() == [None] * size
        return started[-1]

    yield start
    for ranks in started:
        ranks.end()


def name(ranks: Ranks, rank: int) -> str:
    """Return the name of one of four ranks in messages."""
    return f"rank {rank} (process {ranks.launched.pids[rank]} on {NAMES[rank]})"


def test_stall_names_the_ranks_of_all_hosts_with_their_lines(ranks_of: Callable[..., Ranks]) -> None:
    where = functools.partial(str, "at train.py:33 in load")
    ranks = ranks_of(4, stall_timeouts=[1.5, 60, 60, 60], where=where)
    for rank in (0, 1, 2):
        ranks.ranks[rank].send("world.allreduce(np.ones(3), key='gradient of w')", {})
    results = [ranks.ranks[rank].result() for rank in (0, 1, 2)]
    ranks.ranks[3].send("world.allreduce(np.ones(3), key='gradient of w')", {})  # when it is over
    assert results + [ranks.ranks[3].result()] == 4 * [
        Failed(
            "Stalled",
            f"gradient of w (allreduce sum of float64[3]) stalled for 1.5 s. Reached by {name(ranks, 0)}, "
            f"{name(ranks, 1)}, {name(ranks, 2)}. Not reached by:\n  {name(ranks, 3)}, at train.py:33 in load, in no "
            "collective",
        )
    ]


def test_stall_in_the_middle_of_a_collective_names_the_line_of_the_script(ranks_of: Callable[..., Ranks]) -> None:
    ranks = ranks_of(2, stall_timeouts=[1, 60], where=functools.partial(str, "at train.py:33 in load"))
    results = ranks.attempt("""
        if rank == 1:
            import time
            from npu_shim.distributed.mpi.links import Links
            Links.send = lambda *arguments: time.sleep(2)
        world.allreduce(np.ones(3), key='a')
        """)
    stopped = "on b) stopped in the middle of a collective for 1 s, at train.py:33 in load."
    assert results[0].kind == "Stalled" and stopped in results[0].text


def test_deadlock_between_hosts_is_reported(ranks_of: Callable[..., Ranks]) -> None:
    ranks = ranks_of(2, stall_timeouts=[2, 60])
    for result in ranks.attempt("for key in ('ab', 'ba')[rank]: world.allreduce(np.ones(3), key=key)"):
        assert result.kind == "Stalled" and "Deadlock: each rank waits in a collective" in result.text


def test_stopped_rank_of_another_host_is_named(ranks_of: Callable[..., Ranks]) -> None:
    ranks = ranks_of(4, stall_timeouts=[3, 60, 60, 60])
    ranks.start("for _ in range(10**9): world.allreduce(np.ones(300_000), key='a')")
    ranks.kill(2, signal.SIGSTOP)
    results = [ranks.ranks[rank].result() for rank in (0, 1)]
    ranks.kill(2, signal.SIGCONT)
    assert results[0] == results[1] and results[0].kind == "Stalled", results
    assert name(ranks, 2) in results[0].text and "is stopped, or its host is off or unreachable" in results[0].text


def test_exit_of_a_rank_is_reported_to_all_hosts_at_once(ranks_of: Callable[..., Ranks]) -> None:
    ranks = ranks_of(4)
    ranks.ranks[3].send("import sys\nsys.last_value = ValueError('no data')\nbackend.close()", {})
    assert ranks.ranks[3].result() is None
    for rank in (0, 1, 2):
        ranks.ranks[rank].send("world.allreduce(np.ones(3), key='loss')", {})
    for rank in (0, 1, 2):
        result = ranks.ranks[rank].result(10)
        assert result.kind == "PeerLost", result
        assert f"{name(ranks, 3)} has exited with ValueError: no data" in result.text


def test_later_collectives_raise_the_same_error_on_the_other_host(ranks_of: Callable[..., Ranks]) -> None:
    ranks = ranks_of(4, stall_timeouts=[1, 60, 60, 60])
    ranks.ranks[0].send("world.allreduce(np.ones(3), key='loss')", {})
    first = ranks.ranks[0].result()
    for rank in (3, 2, 1):
        ranks.ranks[rank].send("world.barrier(key='b')", {})
        assert ranks.ranks[rank].result(10) == first


def test_groups_run_in_different_orders(ranks_of: Callable[..., Ranks]) -> None:
    """Each rank starts the groups of several hosts in another order, on threads."""
    ranks = ranks_of(4)
    assert (
        ranks.run("""
        import concurrent.futures
        groups = [("even", [0, 2]), ("odd", [1, 3]), ("late", [1, 2, 3]), ("world", [0, 1, 2, 3]), ("here", [2, 3])]
        mine = [(name, members) for name, members in groups if rank in members]
        mine = mine[rank % len(mine):] + mine[:rank % len(mine)]
        def run(one):
            group = backend.group(*one)
            return one[0], [int(group.allreduce(np.int64(rank + 1), key="k %d" % i)) for i in range(20)]
        with concurrent.futures.ThreadPoolExecutor(5) as threads:
            found = dict(threads.map(run, mine))
        result = all(found[n] == [sum(m) + len(m)] * 20 for n, m in mine)
        """)
        == [True] * 4
    )


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_large_reductions_of_hosts_of_one_rank_have_the_bits_of_rank_order(
    size: int, dtype: str, ranks_of: Callable[..., Ranks]
) -> None:
    """Blocks of one array, and blocks that span several, in more than two chunks, of which the last is short."""
    ranks = ranks_of(size, servers=list("abc"[:size]))
    counts = [3_000_000, 5, 40_001, 0, 2_500_000]
    inputs = [
        [
            np.random.RandomState(10 * rank + index).standard_normal(count).astype(dtype)
            for index, count in enumerate(counts)
        ]
        for rank in range(size)
    ]
    results = ranks.run(
        """result = (world.allreduce(xs[rank], key="a"), world.reduce(xs[rank], root=1, key="r"))""", xs=inputs
    )
    total = [functools.reduce(np.add, (x.astype(np.float32) for x in each)).astype(dtype) for each in zip(*inputs)]
    for rank, (everywhere, at_root) in enumerate(results):
        expected = total if rank == 1 else inputs[rank]
        assert [x.tobytes() for x in everywhere] == [x.tobytes() for x in total]
        assert [x.tobytes() for x in at_root] == [x.tobytes() for x in expected]


def test_ranks_that_alternate_between_hosts(ranks_of: Callable[..., Ranks]) -> None:
    """A sum then has another order than on one host, but the same bits on every rank."""
    ranks = ranks_of(4, servers=["a", "b", "a", "b"], chunk_bytes=8192)
    inputs = [np.random.RandomState(rank).standard_normal(20_000).astype(np.float32) for rank in range(4)]
    results = ranks.run(
        """result = (world.allreduce(xs[rank], key="a"), world.allgather(xs[rank][: 100 + rank], key="g"),
                     world.broadcast(xs[rank], root=2, key="b"), world.alltoall(xs[rank], None, key="t")[0])""",
        xs=inputs,
    )
    for rank, (reduced, gathered, copied, exchanged) in enumerate(results):
        assert reduced.tobytes() == results[0][0].tobytes()
        np.testing.assert_allclose(reduced, sum(x.astype(np.float64) for x in inputs), rtol=1e-5, atol=1e-5)
        assert (gathered == np.concatenate([x[: 100 + r] for r, x in enumerate(inputs)])).all()
        assert (copied == inputs[2]).all()
        assert (exchanged == np.concatenate([x.reshape(4, -1)[rank] for x in inputs])).all()


SCRIPT = """
import os, sys
import numpy as np
from npu_shim.distributed import mpi
rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"])
job = mpi.join_job(rank, 2, sys.argv[1], servers=["a", "b"])
job.world.allreduce(np.ones(3), key="first")
if rank == 1:
    {fault}
job.world.allreduce(np.ones(3), key="loss")
sys.stdout.write("rank %d is done\\n" % rank)  # in one piece
"""


@pytest.mark.parametrize(
    "fault, expected",
    [
        ("open('/no/such/data.csv')", "No such file or directory: '/no/such/data.csv'"),
        ("os.kill(os.getpid(), 9)", "signal"),
        ("pass", "rank 0 is done"),
    ],
    ids=["error", "kill", "none"],
)
def test_failure_of_a_rank_ends_the_job(fault: str, expected: str, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(fault=fault))
    done = run([*mpi_ranks.command(2), sys.executable, str(script), tmp_path.name])
    assert (done.returncode == 0) == (fault == "pass"), done.stdout
    assert expected in done.stdout, done.stdout


def run(command: list[str]) -> Any:
    """Run a command and return it with its output."""
    return subprocess.run(
        command,
        env=mpi_ranks.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    "before, expected",
    [
        ("", r"Mismatch: rank 0 (process "),
        ("sys.modules['mpi4py'] = None", "ranks on several hosts need mpi4py"),
    ],
    ids=["another MPI", "no mpi4py"],
)
def test_rank_without_mpirun_or_mpi4py_is_an_error_that_names_the_fix(before: str, expected: str) -> None:
    source = (
        f"import sys\n{before}\nfrom npu_shim.distributed import mpi\nmpi.join_job(0, 2, 'alone', servers=['a', 'b'])"
    )
    done = run([sys.executable, "-c", source])
    assert done.returncode != 0 and expected in done.stdout, done.stdout
    assert "or with one mpirun or srun" in done.stdout or "pip install 'npu_shim[mpi]'" in done.stdout
