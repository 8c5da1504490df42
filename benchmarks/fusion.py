"""The time to all-reduce the gradients of hundreds of variables, against one tensor of as many bytes.

    python benchmarks/fusion.py            prints a table; takes about a minute
    python benchmarks/fusion.py --write    and puts it into benchmarks/RESULTS.md and results.json

Gradients are fused into messages: two by default, as many as a split strategy
says, and one for each gradient where nothing is fused. The one tensor goes with
as many ops that read variables as the gradients have, so that the difference is
what fusion costs and not what TensorFlow takes for ops. All of them run in turns
in the same two processes; the number of collectives is counted in the graph.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from typing import Any, Callable, NamedTuple, Sequence

import processes
import results

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

RANKS = 2
VARIABLES = 400
ALL_BYTES = 100 << 20
BASELINE = "one tensor"


def work(
    rank: int, size: int, barrier: Any, variables: int, all_bytes: int, repeats: int, rounds: int
) -> list[tuple[str, int, float]]:
    """One rank: of each way its name, its collectives and seconds of one sum, in the fastest round."""
    from npu_shim import npu_init

    count = all_bytes // 4
    shapes = shapes_of(count, variables)

    def fused(tensors: list[Any]) -> list[Any]:
        return npu_init.npu_allreduce(tensors, "sum")

    def in_five(tensors: list[Any]) -> list[Any]:
        npu_init.set_split_strategy_by_size([20, 20, 20, 20, 20])
        return fused(tensors)

    def one_by_one(tensors: list[Any]) -> list[Any]:
        return [npu_init.npu_allreduce(tensor, "sum") for tensor in tensors]

    ways: dict[str, Sum] = {
        BASELINE: summed(rank, size, [[count]], fused, beside=len(shapes)),
        f"{variables} gradients": summed(rank, size, shapes, fused),
        f"{variables}, in five parts": summed(rank, size, shapes, in_five),
        f"{variables}, nothing fused": summed(rank, size, shapes, one_by_one),
    }
    seconds = measured({name: way.run for name, way in ways.items()}, barrier, repeats, rounds)
    return [(name, way.collectives, seconds[name]) for name, way in ways.items()]


class Sum(NamedTuple):
    """A graph that adds up variables: its runner, its reader, its collectives and the seconds to build them."""

    run: Callable[[], Any]
    read: Callable[[], Any]
    collectives: int
    build_seconds: float


def summed(
    rank: int,
    size: int,
    shapes: Sequence[Sequence[int]],
    reduce: Callable[[list[Any]], list[Any]],
    builds: int = 1,
    beside: int = 0,
) -> Sum:
    """Return the graph in which ``reduce`` adds up variables over all ranks. The fastest of several builds counts.

    So many other variables are only read, beside.

    Raises:
        RuntimeError: a sum is wrong.
    """
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    from npu_shim import npu_init

    build_seconds = float("inf")
    for _ in range(builds):
        graph = tf.Graph()
        with graph.as_default():
            given = [variable_of(shape, rank) for shape in shapes]
            begin = time.perf_counter()
            made = reduce(given)
            build_seconds = min(build_seconds, time.perf_counter() - begin)
    with graph.as_default():
        others = [variable_of([1], rank) for _ in range(beside)]
        session = tf.Session(config=npu_init.npu_config_proto())
        session.run(tf.global_variables_initializer())
        for reduced in (made[0], made[-1]):
            if not (session.run(reduced) == size * (size - 1) / 2).all():
                raise RuntimeError(f"a wrong sum of {len(shapes)} tensors")
        collectives = sum(op.type == "MapDataset" for op in graph.get_operations())  # each runs in a dataset
        run, read = (session.make_callable(tf.group(*tensors)) for tensors in (made + others, given))
        return Sum(run, read, collectives, build_seconds)


def variable_of(shape: Sequence[int], rank: int) -> Any:
    """The value of a variable that has the rank's number everywhere."""
    import tensorflow.compat.v1 as tf

    return tf.Variable(tf.fill(shape, float(rank)), use_resource=True).read_value()


def measured(ways: dict[Any, Callable[[], Any]], barrier: Any, repeats: int, rounds: int) -> dict[Any, float]:
    """Seconds of one run of each, in the fastest of so many rounds; all run in turns."""
    found: dict[Any, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, run in ways.items():
            run()
            barrier.wait()
            begin = time.perf_counter()
            for _ in range(repeats):
                run()
            found[name].append((time.perf_counter() - begin) / repeats)
    return {name: min(seconds) for name, seconds in found.items()}


def shapes_of(count: int, variables: int) -> list[list[int]]:
    """Large kernels and small biases by turns, so many of both, which together have so many numbers."""
    pairs = variables // 2
    bias = 256
    rows = count // pairs // bias - 1
    shapes = [[rows, bias], [bias]] * pairs
    shapes[-1] = [count - (pairs * rows + pairs - 1) * bias]
    return shapes


def main(argv: list[str]) -> int:
    """Measures, and says or writes what it found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="small tensors, once each: to see that it works")
    args = parser.parse_args(argv)
    given = (120, 4 << 20, 1, 1) if args.quick else (VARIABLES, ALL_BYTES, 4, 9)
    found = processes.run_ranks(RANKS, work, *given)
    base = dict((name, seconds) for name, _, seconds in found)[BASELINE]
    rows = [
        {
            "what": name,
            "ranks": RANKS,
            "bytes": given[1],
            "collectives": count,
            "seconds": seconds,
            "ratio": seconds / base,
        }
        for name, count, seconds in found
    ]
    table = results.markdown(
        ("what is added up", "collectives", "ms", "ratio"),
        [
            (row["what"], f"{row['collectives']:.0f}", f"{row['seconds'] * 1e3:.1f}", "{:.2f}".format(row["ratio"]))
            for row in rows
        ],
    )
    results.report("fusion", table, rows, args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
