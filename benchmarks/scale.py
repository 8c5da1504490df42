"""The cost of a training step by ranks: measured on one host, calculated for up to 128 hosts.

    python benchmarks/scale.py            prints two tables; takes about four minutes, and needs mpi4py with Open MPI
    python benchmarks/scale.py --write    and puts them into benchmarks/RESULTS.md and results.json

Measured: a small model on 1 to 64 ranks of this host (npu-shim launch --rehearse, servers of eight ranks), where each
rank has the same number of rows; the all-reduces of a step, counted; all-reduces of n bytes on eight ranks of a host,
and on two and four hosts, which are processes of this machine with MPI over TCP. Eight ranks and two hosts give the
latency a and the bandwidth B of shared memory and of a link, fitted as a + n / B and 2 (a + n / 2B). Four hosts are
not fitted: they test the model.

Calculated: the all-reduces of that step and of one with the gradients of ResNet-50 on 8 to 1,024 ranks. The model knows
no contention, no switches and no overlap of sums with computing.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any, Callable, NamedTuple, Sequence

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from benchmarks import results  # noqa: E402

RANKS = (1, 2, 4, 8, 16, 32, 64)
MODEL_RANKS = (8, 16, 32, 64, 128, 256, 512, 1024)
OF_A_HOST = 8
RESNET_BYTES = 25_557_032 * 4  # trainable parameters of ResNet-50 v1 with 1,000 classes, as float32
SIZES = tuple(1 << power for power in range(10, 25, 2))
_ROOT = results.RESULTS.parent.parent

# Rank 0: the seconds of a step, its all-reduces and their bytes.
STEPS = """
import json, sys, time
import numpy as np
import tensorflow.compat.v1 as tf
from npu_shim.distributed.collectives.process_group import ProcessGroup
from npu_shim.npu_init import npu_distributed_optimizer_wrapper
from npu_shim.hccl.manage.api import get_rank_id, get_rank_size

messages, allreduce = [], ProcessGroup.allreduce
def counted(self, tensors, *given, **named):
    arrays = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    messages.append(sum(np.asarray(array).nbytes for array in arrays))
    return allreduce(self, tensors, *given, **named)
ProcessGroup.allreduce = counted

tf.disable_v2_behavior()
rank, size, steps = get_rank_id(), get_rank_size(), int(sys.argv[1])
random = np.random.RandomState(rank)
layer = tf.constant(random.rand(32, 64), tf.float32)
for index, units in enumerate((256, 256, 10)):
    start = tf.glorot_uniform_initializer(seed=1)
    kernel = tf.get_variable(f"kernel_{index}", [layer.shape[1], units], initializer=start)
    layer = tf.matmul(layer, kernel) + tf.get_variable(f"bias_{index}", [units], initializer=tf.zeros_initializer())
    layer = tf.nn.relu(layer) if units > 10 else layer
loss = tf.losses.sparse_softmax_cross_entropy(tf.constant(random.randint(0, 10, 32)), layer)
optimizer = tf.train.GradientDescentOptimizer(0.01)
train = (npu_distributed_optimizer_wrapper(optimizer) if size > 1 else optimizer).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    run = session.make_callable(train)
    for _ in range(5):
        run()
    del messages[:]
    begin = time.perf_counter()
    for _ in range(steps):
        run()
    seconds = (time.perf_counter() - begin) / steps
if rank == 0:
    with open("found.json", "w") as file:
        json.dump({"step_s": seconds, "messages": len(messages) / steps, "bytes": sum(messages) / steps}, file)
"""
# Ranks of one group: the seconds of an all-reduce, by bytes.
SUMS = """
import json, sys, time
import numpy as np
from npu_shim.distributed import backend
from npu_shim.distributed.world import world

group, found = backend.connect().world, {}
for size in json.loads(sys.argv[1]):
    data, out = np.ones(size // 4, np.float32), np.empty(size // 4, np.float32)
    times = []
    for turn in range(9):
        group.barrier(key="turn")
        begin = time.perf_counter()
        group.allreduce([data], key="sum", out=[out])
        times.append(time.perf_counter() - begin)
    found[size] = min(times[1:])
if world().rank == 0:
    with open(sys.argv[2], "w") as file:
        json.dump(found, file)
"""


class Link(NamedTuple):
    """The seconds of a message of n bytes: latency_s + n / bandwidth."""

    latency_s: float
    bandwidth: float  # bytes a second

    def seconds(self, size: float) -> float:
        """Return the seconds of a message of so many bytes."""
        return self.latency_s + size / self.bandwidth


def fit(seconds: dict[int, float]) -> Link:
    """Return the link whose times are nearest to those measured, by relative error."""
    import numpy as np

    sizes = np.array(sorted(seconds), float)
    times = np.array([seconds[int(size)] for size in sizes])
    rows = np.stack([1 / times, sizes / times], axis=1)  # a / t + n / (B t) = 1
    (latency, per_byte), *_ = np.linalg.lstsq(rows, np.ones(len(times)), rcond=None)
    if per_byte <= 0:  # sizes so small that noise decides
        return Link(float(times.mean()), math.inf)
    return Link(max(float(latency), 0.0), 1 / float(per_byte))


def link_of_two(seconds: dict[int, float]) -> Link:
    """Return the link with which a ring of two takes these times."""
    whole = fit(seconds)
    return Link(whole.latency_s / 2, whole.bandwidth)


def ring(link: Link, ranks: int, size: float) -> float:
    """Reduce-scatter and all-gather along a ring: 2 (p - 1) messages of n / p bytes, one after the other."""
    return 2 * (ranks - 1) * link.seconds(size / ranks)


def tree(link: Link, ranks: int, size: float) -> float:
    """A binomial tree to one rank and back: 2 ceil(log2 p) messages of n bytes."""
    return 2 * math.ceil(math.log2(ranks)) * link.seconds(size)


def hierarchical(link: Link, host: Link, ranks: int, size: float) -> float:
    """Shared memory within each host, and a ring of the hosts."""
    return host.seconds(size) + ring(link, ranks // OF_A_HOST, size)


def job(folder: pathlib.Path, ranks: int, script: str, *arguments: str) -> None:
    """Run a script on ranks of this host: one server, or servers of eight ranks."""
    (folder / "train.py").write_text(script)
    servers = [f"10.0.0.{index + 1}:{min(ranks, OF_A_HOST)}" for index in range(max(1, ranks // OF_A_HOST))]
    _run(folder, "-m", "npu_shim", "launch", "-H", ",".join(servers), "--rehearse", "train.py", *arguments)


def hosts(folder: pathlib.Path, script: str, number: int, *arguments: str) -> None:
    """Run a script on servers of one rank that mpirun starts on this machine, with TCP between them."""
    (folder / "mpi.py").write_text(script)
    table = folder / f"table_{number}.json"
    named = ",".join(f"host{index}:1" for index in range(number))
    _run(folder, "-m", "npu_shim", "ranktable", "make", "--hosts", named, "-o", str(table))
    mpirun = [os.path.join(os.path.dirname(sys.executable), "mpirun"), "-np", str(number), "--oversubscribe"]
    mpirun += ["--allow-run-as-root", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]
    environ = {**_environ(), "RANK_TABLE_FILE": str(table)}
    subprocess.run([*mpirun, sys.executable, "mpi.py", *arguments], cwd=folder, env=environ, check=True)


def measure(quick: bool) -> dict[str, Any]:
    """Return the steps by ranks, the links, and the seconds of a sum on four hosts."""
    sizes = json.dumps(SIZES[:3] if quick else SIZES)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for ranks in RANKS[:2] if quick else RANKS:
            found = []
            for _ in range(1 if quick else 3):
                job(folder, ranks, STEPS, "5" if quick else "40")
                found.append(json.loads((folder / "found.json").read_text()))
            rows.append({"ranks": ranks, **found[0], "step_s": statistics.median(each["step_s"] for each in found)})
        job(folder, 2 if quick else OF_A_HOST, SUMS, sizes, "host.json")
        hosts(folder, SUMS, 2, sizes, "two.json")
        hosts(folder, SUMS, 4, sizes, "four.json")
        host, two, four = (_seconds(folder / f"{name}.json") for name in ("host", "two", "four"))
    return {"rows": rows, "host": fit(host), "link": link_of_two(two), "four": four}


def _seconds(path: pathlib.Path) -> dict[int, float]:
    return {int(size): seconds for size, seconds in json.loads(path.read_text()).items()}


def _environ() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(_ROOT), str(_ROOT / "tools")]),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "NPU_SHIM_FALLBACK": "silent",
    }


def _run(folder: pathlib.Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=_environ(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        raise RuntimeError(done.stdout.decode(errors="replace")[-2000:])


def model(link: Link, host: Link, steps: Sequence[tuple[str, float, float]]) -> list[dict[str, Any]]:
    """Return the calculated seconds of the all-reduces of a step.

    Args:
        link: between hosts.
        host: what an all-reduce of eight ranks in shared memory costs.
        steps: of each model its name, the all-reduces of a step and the bytes of all of them.
    """
    forms: dict[str, Callable[[int, float], float]] = {
        "ring_s": functools.partial(ring, link),
        "tree_s": functools.partial(tree, link),
        "hierarchical_s": functools.partial(hierarchical, link, host),
    }
    return [
        {
            "model": name,
            "ranks": ranks,
            **{form: messages * seconds(ranks, size / messages) for form, seconds in forms.items()},
        }
        for name, messages, size in steps
        for ranks in MODEL_RANKS
    ]


def tables(found: dict[str, Any], link: Link, calculated: list[dict[str, Any]]) -> str:
    """Return what was measured and what was calculated, in Markdown."""
    one = found["rows"][0]["step_s"]
    measured = results.markdown(
        ("ranks", "step, ms", "ms a rank", "times one rank, per rank", "all-reduces a step", "bytes a step"),
        [
            [
                str(row["ranks"]),
                f"{row['step_s'] * 1e3:.2f}",
                f"{row['step_s'] * 1e3 / row['ranks']:.2f}",
                f"{row['step_s'] / row['ranks'] / one:.2f}",
                f"{row['messages']:g}",
                f"{row['bytes']:.0f}",
            ]
            for row in found["rows"]
        ],
    )
    against = results.markdown(
        ("bytes", "four hosts, measured, ms", "ring of four, calculated, ms", "measured / calculated"),
        [
            [
                str(size),
                f"{seconds * 1e3:.3f}",
                f"{ring(found['link'], 4, size) * 1e3:.3f}",
                f"{seconds / ring(found['link'], 4, size):.2f}",
            ]
            for size, seconds in sorted(found["four"].items())
        ],
    )
    forms = ("ring_s", "tree_s", "hierarchical_s")
    by_model = results.markdown(
        ("model", "ranks", "ring, ms", "tree, ms", "hierarchical, ms"),
        [[row["model"], str(row["ranks"]), *(f"{row[form] * 1e3:.2f}" for form in forms)] for row in calculated],
    )
    return (
        f"Measured, on ranks of one host:\n\n{measured}\n"
        f"Two hosts: a link of {_described(found['link'])}. Shared memory of {OF_A_HOST} ranks: "
        f"{_described(found['host'])}. Four hosts:\n\n{against}\n"
        f"Calculated for a link of {_described(link)}, {OF_A_HOST} ranks a host:\n\n{by_model}"
    )


def _described(link: Link) -> str:
    return f"{link.latency_s * 1e6:.0f} µs and {link.bandwidth / 1e9:.2f} GB/s"


def main(argv: list[str]) -> int:
    """Measures and calculates, and says or writes what it found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the tables into benchmarks/RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="one and two ranks, a few steps")
    parser.add_argument("--latency", type=float, help="seconds of a message without content, of the link between hosts")
    parser.add_argument("--bandwidth", type=float, help="its bytes a second; both as measured on this host if left out")
    args = parser.parse_args(argv)
    found = measure(args.quick)
    measured = found["link"]
    link = Link(
        measured.latency_s if args.latency is None else args.latency,
        measured.bandwidth if args.bandwidth is None else args.bandwidth,
    )
    last = found["rows"][-1]
    steps = [
        ("this one", last["messages"], last["bytes"]),
        ("ResNet-50, 1 all-reduce", 1, RESNET_BYTES),
        ("ResNet-50, 8 all-reduces", 8, RESNET_BYTES),
    ]
    calculated = model(link, found["host"], steps)
    results.report("scale", tables(found, link, calculated), [*found["rows"], *calculated], args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
