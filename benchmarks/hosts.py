"""The speed of reductions over MPI, against MPI's own all-reduce and that of PyTorch on gloo, in the same run.

    python benchmarks/hosts.py            prints a table; takes about six minutes, needs mpi4py with Open MPI
    python benchmarks/hosts.py --write    and puts it into benchmarks/RESULTS.md and results.json

Ranks of one host, which share memory; of one host with MPI among all of them; of two hosts. The hosts are network
namespaces of this machine, with a pair of veth devices between them. All sides take turns in the same processes and
reduce the same arrays, and each is checked: a wrong sum ends the run. Where PyTorch can be imported, its all-reduce on
gloo is one of them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
from typing import Any, Callable, NamedTuple

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from benchmarks import results, turns  # noqa: E402

ROOT = results.RESULTS.parent.parent
# Bytes of a tensor, and how often it is reduced in each round
SIZES = {
    "1 KB": (1 << 10, 100),
    "16 KB": (16 << 10, 100),
    "64 KB": (64 << 10, 60),
    "256 KB": (256 << 10, 30),
    "1 MB": (1 << 20, 15),
    "4 MB": (4 << 20, 8),
    "16 MB": (16 << 20, 3),
    "100 MB": (100 << 20, 1),
}
QUICK = ("1 KB", "1 MB")
ROUNDS = 15
MPI, OURS, GLOO = "MPI", "npu_shim", "torch gloo"


class Layout(NamedTuple):
    """Ranks by host: what they are called, the server of each rank, and the hosts on which mpirun starts them."""

    name: str
    servers: str
    hosts: int


LAYOUTS = (
    Layout("one host", "aa", 1),
    Layout("one host", "aaaa", 1),
    Layout("one host, all over MPI", "ab", 1),
    Layout("one host, all over MPI", "abcd", 1),
    Layout("two hosts", "ab", 2),
    Layout("two hosts", "aabb", 2),
)


def measure(layout: Layout, quick: bool) -> list[dict[str, Any]]:
    """Return a row for each size."""
    with tempfile.TemporaryDirectory() as name:
        found = pathlib.Path(name, "found.json")
        size = len(layout.servers)
        mpirun = [os.path.join(os.path.dirname(sys.executable), "mpirun"), "-np", str(size), "--bind-to", "none"]
        mpirun += ["--allow-run-as-root"] if os.geteuid() == 0 else []
        begin = []
        if layout.hosts == 2:
            from tests.mpi import two_hosts

            mpirun += ["--host", ",".join(f"{address}:{size // 2}" for address in two_hosts.ADDRESSES)]
            begin = ["unshare", "--user", "--map-root-user", "--net", sys.executable, two_hosts.__file__, name]
        else:
            mpirun += ["--oversubscribe"]
        environ = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OMPI_MCA_mpi_yield_when_idle": "1",  # there may be more ranks than processors
            "GLOO_PORT": str(_free_port()),
        }
        words = [sys.executable, str(pathlib.Path(__file__).resolve()), "--servers", layout.servers, str(found)]
        exported = [word for key in ("PYTHONPATH", "OMPI_MCA_mpi_yield_when_idle", "GLOO_PORT") for word in ("-x", key)]
        subprocess.run(
            [*begin, *mpirun, *exported, *words, *(["--quick"] if quick else [])], env=environ, check=True, timeout=1800
        )
        return [{"layout": layout.name, "ranks": size, **row} for row in json.loads(found.read_text())]


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def work(servers: str, found: pathlib.Path, quick: bool) -> None:
    """One rank: measures every size with every side; rank 0 answers."""
    from npu_shim.distributed import mpi

    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    backend = mpi.join(rank, len(servers), f"hosts-{os.environ['GLOO_PORT']}", servers=list(servers))
    from mpi4py import MPI as library

    world = library.COMM_WORLD
    sides: dict[str, Callable[[np.ndarray, np.ndarray], Callable[[], Any]]] = {
        MPI: lambda array, out: lambda: world.Allreduce(array, out),
        OURS: lambda array, out: lambda: backend.world.allreduce(array, key="sum", out=out),
    }
    if importlib.util.find_spec("torch"):
        sides[GLOO] = gloo(rank, len(servers))
    rows = []
    for name, (size, repeats) in {key: SIZES[key] for key in (QUICK if quick else SIZES)}.items():
        array, out = np.full(size // 4, rank + 1, np.float32), np.empty(size // 4, np.float32)
        trains: dict[str, turns.Train] = {}
        for side, prepare in sides.items():
            out[...] = array
            run = prepare(array, out)
            run()
            if not (out == len(servers) * (len(servers) + 1) / 2).all():
                raise RuntimeError(f"{side}: a wrong sum of {name}")
            trains[side] = repeated(world, run)
        rounds = 1 if quick else ROUNDS
        seconds = turns.measure(trains, dict.fromkeys(trains, repeats), rounds, warm_up=0 if quick else 1)
        ratios = {side: turns.ratio(seconds[side], seconds[OURS]) for side in seconds if side != OURS}
        best = {side: min(each) for side, each in seconds.items()}
        median = {side: statistics.median(each) for side, each in seconds.items()}
        rows.append({"size": name, "seconds": median, "fastest": best, "ratios": ratios})
    if rank == 0:
        found.write_text(json.dumps(rows))
    world.Barrier()


def repeated(world: Any, run: Callable[[], Any]) -> turns.Train:
    """Return a function that calls another so many times, on all ranks at once."""

    def train(steps: int) -> None:
        world.Barrier()
        for _ in range(steps):
            run()

    return train


def gloo(rank: int, size: int) -> Callable[[np.ndarray, np.ndarray], Callable[[], Any]]:
    """Return a function that prepares the all-reduce of PyTorch, which is in place."""
    import torch
    from torch import distributed

    names = [name for _, name in socket.if_nameindex()]
    device = next((name for name in ("here", "there") if name in names), "lo")
    os.environ["GLOO_SOCKET_IFNAME"] = device
    from tests.mpi import two_hosts

    address = "127.0.0.1" if device == "lo" else two_hosts.ADDRESSES[0]
    store = f"tcp://{address}:{os.environ['GLOO_PORT']}"
    distributed.init_process_group("gloo", store, rank=rank, world_size=size)

    def prepare(array: np.ndarray, out: np.ndarray) -> Callable[[], Any]:
        tensor = torch.from_numpy(out)  # which grows with each further sum
        return lambda: distributed.all_reduce(tensor)

    return prepare


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as Markdown: milliseconds, and how many times as fast as the others npu_shim is."""
    sides = [side for side in (MPI, GLOO) if side in rows[0]["seconds"]]
    head = ["ranks of", "ranks", "size", f"{OURS}, ms"] + [text for side in sides for text in (f"{side}, ms", "ratio")]
    cells = [
        [row["layout"], str(row["ranks"]), row["size"], f"{row['seconds'][OURS] * 1e3:.3g}"]
        + [text for side in sides for text in (f"{row['seconds'][side] * 1e3:.3g}", f"{row['ratios'][side]:.2f}")]
        for row in rows
    ]
    return results.markdown(head, cells)


def main(argv: list[str]) -> int:
    """Measures, and says or writes what it found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="two sizes, once each: to see that it works")
    parser.add_argument("--servers", help=argparse.SUPPRESS)
    parser.add_argument("found", nargs="?", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.servers:
        work(args.servers, args.found, args.quick)
        return 0
    rows = [row for layout in LAYOUTS for row in measure(layout, args.quick)]
    results.report("hosts", table(rows), rows, args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
