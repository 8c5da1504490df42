"""The speed of reductions among ranks of one host, against a ring of TCP connections on the loopback device.

    python benchmarks/collectives.py            prints a table; takes about two minutes
    python benchmarks/collectives.py --write    and puts it into benchmarks/RESULTS.md and results.json

Both sides run in turns in the same processes, so that their ratio holds although
the machine may be busy. Each is also checked: a wrong sum ends the run. Where
TensorFlow can be imported, the op hccl_ops.allreduce in a session is measured too,
and for comparison the collective op of TensorFlow; where PyTorch can, its all-reduce on gloo.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import os
import pathlib
import socket
import statistics
import sys
import time
from typing import Any, Callable, NamedTuple, Tuple

import numpy as np
import results

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

# Bytes of a tensor, and how often it is reduced in each of five rounds
SIZES = {"1 KB": (1 << 10, 200), "1 MB": (1 << 20, 40), "16 MB": (16 << 20, 10), "100 MB": (100 << 20, 4)}
QUICK = {"1 KB": (1 << 10, 5), "1 MB": (1 << 20, 2)}


# Of an array: what reduces it over all ranks, and what gives the sum after the first time.
Prepare = Callable[[np.ndarray], Tuple[Callable[[], Any], Callable[[], Any]]]


class Row(NamedTuple):
    """Seconds of one all-reduce, by backend."""

    ranks: int
    size: str
    seconds: dict[str, float]


class Ring:
    """All-reduce over a ring of TCP connections: reduce-scatter, then all-gather, as is usual."""

    def __init__(self, rank: int, size: int, ports: list[int], listener: socket.socket) -> None:
        self.rank, self.size = rank, size
        self._next = socket.create_connection(("127.0.0.1", ports[(rank + 1) % size]))
        self._previous, _ = listener.accept()
        for connection in (self._next, self._previous):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def allreduce(self, array: np.ndarray) -> np.ndarray:
        """The sum of an array over all ranks."""
        out = array.copy()
        parts = np.array_split(out, self.size)
        room = np.empty_like(parts[0])
        for step in range(2 * self.size - 2):
            sent = parts[(self.rank - step) % self.size]
            into = parts[(self.rank - step - 1) % self.size]
            reducing = step < self.size - 1
            self._exchange(sent, room[: into.size] if reducing else into)
            if reducing:
                into += room[: into.size]
        return out

    def _exchange(self, sent: np.ndarray, into: np.ndarray) -> None:
        """Sends and receives at once, piece by piece, so that neither side waits for a full buffer."""
        give, take = memoryview(sent).cast("B"), memoryview(into).cast("B")
        given = taken = 0
        while given < len(give) or taken < len(take):
            if given < len(give):
                given += self._next.send(give[given : given + (128 << 10)])
            if taken < len(take):
                taken += self._previous.recv_into(take[taken : taken + (128 << 10)])


def work(
    rank: int, size: int, job: str, ports: list[int], listener: Any, args: argparse.Namespace, answers: Any
) -> None:
    """One rank: measures every size with every backend; rank 0 answers."""
    from npu_shim.distributed import shm

    backend = shm.join(rank, size, job)
    backends: dict[str, Prepare] = {
        "TCP ring": ring_of(Ring(rank, size, ports, listener)),
        "shared memory": shared_by(backend),
    }
    if not args.without_tensorflow:
        backends["in a session"] = in_a_session(rank, size, job)
        backends["TensorFlow's op"] = collective_op(rank, size, ports[size + 1 :])
    if importlib.util.find_spec("torch"):
        backends["torch gloo"] = gloo(rank, size, ports[size])
    found: list[tuple[str, dict[str, float]]] = []
    for name, (count, repeats) in (QUICK if args.quick else SIZES).items():
        array = np.full(count // 4, rank + 1, np.float32)
        times: dict[str, list[float]] = {backend_name: [] for backend_name in backends}
        for _ in range(1 if args.quick else 5):
            for backend_name, prepare in backends.items():
                run, result = prepare(array)
                run()
                if not (result() == size * (size + 1) / 2).all():
                    raise RuntimeError(f"{backend_name}: a wrong sum of {name}")
                backend.world.barrier(key="before")
                begin = time.perf_counter()
                for _ in range(repeats):
                    run()
                times[backend_name].append((time.perf_counter() - begin) / repeats)
        found.append((name, {backend_name: statistics.median(each) for backend_name, each in times.items()}))
    if rank == 0:
        answers.put(found)
    backend.world.barrier(key="done")


def ring_of(ring: Ring) -> Prepare:
    """The baseline."""

    def prepare(array: np.ndarray) -> tuple[Callable[[], None], Callable[[], Any]]:
        found: list[np.ndarray] = []
        return lambda: found.__setitem__(slice(None), [ring.allreduce(array)]), lambda: found[0]

    return prepare


def shared_by(backend: Any) -> Prepare:
    """A backend, with a reused result buffer."""

    def prepare(array: np.ndarray) -> tuple[Callable[[], None], Callable[[], Any]]:
        out = np.empty_like(array)
        return lambda: backend.world.allreduce(array, "sum", key="measured", out=out), lambda: out

    return prepare


def in_a_session(rank: int, size: int, job: str) -> Prepare:
    """hccl_ops.allreduce of a variable in a session."""
    os.environ.update(
        RANK_ID=str(rank), RANK_SIZE=str(size), JOB_ID=job + "-tf", NPU_SHIM_FALLBACK="silent", TF_CPP_MIN_LOG_LEVEL="3"
    )
    import tensorflow.compat.v1 as tf

    from npu_shim import npu_init

    tf.disable_v2_behavior()
    made: dict[int, Any] = {}
    session = tf.Session(config=npu_init.npu_config_proto())

    def prepare(array: np.ndarray) -> tuple[Callable[[], None], Callable[[], Any]]:
        if array.size not in made:
            variable = tf.Variable(tf.zeros([array.size]))
            value = tf.placeholder(tf.float32, [array.size])
            session.run(variable.initializer)
            session.run(tf.assign(variable, value), {value: array})
            made[array.size] = npu_init.hccl_ops.allreduce(variable, "sum")
        reduced = made[array.size]
        return session.make_callable(reduced.op), lambda: session.run(reduced)

    return prepare


def collective_op(rank: int, size: int, ports: list[int]) -> Prepare:
    """CollectiveReduce of TensorFlow's own runtime, in a session on a server of its own."""
    import tensorflow.compat.v1 as tf
    from tensorflow.python.ops import collective_ops

    config = tf.ConfigProto()
    config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
    config.device_filters.append(f"/job:worker/task:{rank}")
    cluster = tf.train.ClusterSpec({"worker": [f"127.0.0.1:{port}" for port in ports]})
    server = tf.train.Server(cluster, job_name="worker", task_index=rank, config=config)
    made: dict[int, tuple[Any, Any]] = {}

    def prepare(array: np.ndarray) -> tuple[Callable[[], None], Callable[[], Any]]:
        if array.size not in made:
            with tf.Graph().as_default() as graph, tf.device(f"/job:worker/replica:0/task:{rank}/device:CPU:0"):
                variable = tf.Variable(tf.zeros([array.size]), use_resource=True)
                value = tf.placeholder(tf.float32, [array.size])
                assign = tf.assign(variable, value)
                reduced = collective_ops.all_reduce(variable.read_value(), size, 1, array.size, "Add", "Id")
                session = tf.Session(server.target, graph=graph, config=config)
                session.run(variable.initializer)
                session.run(assign, {value: array})
                made[array.size] = session, reduced
        session, reduced = made[array.size]
        return session.make_callable(reduced.op), lambda: session.run(reduced)

    return prepare


def gloo(rank: int, size: int, port: int) -> Prepare:
    """Return a function that prepares the ring all-reduce of PyTorch."""
    import torch
    from torch import distributed

    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)

    def prepare(array: np.ndarray) -> tuple[Callable[[], None], Callable[[], Any]]:
        tensor = torch.from_numpy(array.copy())  # which grows with each further sum
        return lambda: distributed.all_reduce(tensor), tensor.numpy

    return prepare


def measure(ranks: int, args: argparse.Namespace) -> list[Row]:
    """The rows of so many ranks."""
    context = multiprocessing.get_context("fork")
    listeners = [_listener() for _ in range(ranks)]
    ports = [listener.getsockname()[1] for listener in listeners]
    free = [_listener() for _ in range(1 + ranks)]  # ports that nobody has, for gloo and TensorFlow
    for one in free:
        ports.append(one.getsockname()[1])
    for one in free:
        one.close()
    answers = context.Queue()
    job = f"benchmark-{os.getpid()}-{ranks}"
    processes = [
        context.Process(target=work, args=(rank, ranks, job, ports, listeners[rank], args, answers))
        for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    found = answers.get(timeout=900)
    for process in processes:
        process.join()
    return [Row(ranks, name, seconds) for name, seconds in found]


def _listener() -> socket.socket:
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    made.listen(1)
    return made


def table(rows: list[Row]) -> str:
    """The rows as Markdown: milliseconds, and how many times faster than the ring."""
    names = list(rows[0].seconds)
    head = ["ranks", "size", names[0] + ", ms"] + [text for name in names[1:] for text in (name + ", ms", "ratio")]
    cells = []
    for row in rows:
        base = row.seconds[names[0]]
        cells.append(
            [f"{row.ranks}", row.size, f"{base * 1e3:.3g}"]
            + [
                text
                for name in names[1:]
                for text in (f"{row.seconds[name] * 1e3:.3g}", f"{base / row.seconds[name]:.1f}")
            ]
        )
    return results.markdown(head, cells)


def main(argv: list[str]) -> int:
    """Measures, and says or writes what it found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/RESULTS.md")
    parser.add_argument("--without-tensorflow", action="store_true", help="measure the shared memory backend only")
    parser.add_argument("--quick", action="store_true", help="small tensors, once each: to see that it works")
    args = parser.parse_args(argv)
    args.without_tensorflow |= importlib.util.find_spec("tensorflow") is None
    rows = [row for ranks in (2, 4) for row in measure(ranks, args)]
    results.report("collectives", table(rows), [row._asdict() for row in rows], args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
