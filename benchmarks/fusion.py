"""How long the gradients of a model with hundreds of variables take to be added up, against one tensor of as many bytes.

    python benchmarks/fusion.py            prints a table; takes about a minute
    python benchmarks/fusion.py --write    and puts it into benchmarks/RESULTS.md and results.json

Gradients are fused into messages: two by default, as many as a split strategy
says, and one for each gradient where nothing is fused. All of them run in turns
in the same two processes; the number of collectives is counted in the graph.
"""
from __future__ import annotations

import argparse
import pathlib
import sys
import time
from typing import Any, Callable, Dict, List, Tuple

import processes
import results

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

RANKS = 2
VARIABLES = 400
ALL_BYTES = 100 << 20
BASELINE = 'one tensor'


def work(rank: int, size: int, barrier: Any, variables: int, all_bytes: int, repeats: int, rounds: int) -> List[Tuple[str, int, float]]:
    """One rank: of each way its name, its collectives and seconds of one sum, in the fastest round."""
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    from npu_shim import npu_init

    count = all_bytes // 4
    shapes = shapes_of(count, variables)

    def one_tensor() -> List[Any]:
        return [npu_init.npu_allreduce(variable([count]), 'sum')]

    def fused() -> List[Any]:
        return npu_init.npu_allreduce([variable(shape) for shape in shapes], 'sum')

    def in_five() -> List[Any]:
        npu_init.set_split_strategy_by_size([20, 20, 20, 20, 20])
        return fused()

    def one_by_one() -> List[Any]:
        return [npu_init.npu_allreduce(variable(shape), 'sum') for shape in shapes]

    def variable(shape: List[int]) -> Any:
        return tf.Variable(tf.fill(shape, float(rank)), use_resource=True).read_value()

    ways: Dict[str, Callable[[], List[Any]]] = {
        BASELINE: one_tensor, '%d gradients' % variables: fused, '%d, in five parts' % variables: in_five,
        '%d, nothing fused' % variables: one_by_one}
    runs: Dict[str, Callable[[], Any]] = {}
    counts: Dict[str, int] = {}
    for name, way in ways.items():
        with tf.Graph().as_default() as graph:
            made = way()
            session = tf.Session(config=npu_init.npu_config_proto())
            session.run(tf.global_variables_initializer())
            if not (session.run(made[-1]) == size * (size - 1) / 2).all():
                raise RuntimeError('%s: a wrong sum' % name)
            runs[name] = session.make_callable(tf.group(*made))
            counts[name] = sum(op.type in ('PyFunc', 'PyFuncStateless', 'EagerPyFunc') for op in graph.get_operations())
    found: Dict[str, List[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, run in runs.items():
            run()
            barrier.wait()
            begin = time.perf_counter()
            for _ in range(repeats):
                run()
            found[name].append((time.perf_counter() - begin) / repeats)
    return [(name, counts[name], min(seconds)) for name, seconds in found.items()]


def shapes_of(count: int, variables: int) -> List[List[int]]:
    """Large kernels and small biases by turns, so many of both, which together have so many numbers."""
    pairs = variables // 2
    bias = 256
    rows = count // pairs // bias - 1
    shapes = [[rows, bias], [bias]] * pairs
    shapes[-1] = [count - (pairs * rows + pairs - 1) * bias]
    return shapes


def main(argv: List[str]) -> int:
    """Measures, and says or writes what it found."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    parser.add_argument('--write', action='store_true', help='put the table into benchmarks/RESULTS.md')
    parser.add_argument('--quick', action='store_true', help='small tensors, once each: to see that it works')
    args = parser.parse_args(argv)
    given = (120, 4 << 20, 1, 1) if args.quick else (VARIABLES, ALL_BYTES, 4, 9)
    found = processes.run_ranks(RANKS, work, *given)
    base = dict((name, seconds) for name, _, seconds in found)[BASELINE]
    rows = [{'what': name, 'ranks': RANKS, 'bytes': given[1], 'collectives': count, 'seconds': seconds,
             'ratio': seconds / base} for name, count, seconds in found]
    table = results.markdown(('what is added up', 'collectives', 'ms', 'ratio'), [
        (row['what'], '%d' % row['collectives'], '%.1f' % (row['seconds'] * 1e3), '%.2f' % row['ratio']) for row in rows])
    results.report('fusion', table, rows, args.write)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
