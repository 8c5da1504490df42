"""What the benchmarks of single ops share: interleaved runs of several forms of an op in a session, and their table.

    python benchmarks/gelu.py                   prints a table and the same as JSON; takes a few minutes
    python benchmarks/gelu.py --write           and puts the table into benchmarks/RESULTS.md
    python benchmarks/gelu.py --keep-memory     with memory kept by TensorFlow, as install() has it

All forms run in turns in one process, so that their ratios hold although the
machine may be busy. A form's results are compared with the baseline's first.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.update(NPU_SHIM_FALLBACK='silent', TF_CPP_MIN_LOG_LEVEL='3')

from benchmarks import results  # noqa: E402

SIZES = (100, 1000, 10 ** 4, 3 * 10 ** 4, 65535, 65536, 10 ** 5, 3 * 10 ** 5, 10 ** 6, 10 ** 7, 4 * 10 ** 7)
QUICK = (1000, 10 ** 5)

# Of a float tensor: the op's result. The first form is the baseline, a last one '+ 1' the limit.
Forms = Dict[str, Callable[[Any], Any]]


class Row(NamedTuple):
    """Seconds by form, for so many elements: forward, and forward and backward."""
    elements: int
    forward: Dict[str, float]
    both: Dict[str, float]


def arguments(doc: str, argv: List[str]) -> argparse.Namespace:
    """The command line of a benchmark of an op."""
    parser = argparse.ArgumentParser(description=doc.split('\n')[0])
    parser.add_argument('--write', action='store_true', help='put the table into benchmarks/RESULTS.md')
    parser.add_argument('--quick', action='store_true', help='two sizes, few runs: to see that it works')
    parser.add_argument('--keep-memory', action='store_true', help='let TensorFlow keep freed memory, for all forms')
    parser.add_argument('--dtype', default='float32', help='float32, float16 or bfloat16')
    parser.add_argument('--unknown', action='store_true', help='of a tensor whose shape the graph does not know')
    parser.add_argument('--elements', type=lambda text: int(float(text)), nargs='*', help='these sizes')
    parser.add_argument('--rounds', type=int, default=9, help='of which the median is taken (9)')
    args = parser.parse_args(argv)
    os.environ['NPU_SHIM_MEMORY'] = 'kept' if args.keep_memory else 'returned'  # of all forms, as they share a process
    return args


def measure(forms: Forms, check: Callable[[str, Any, Any], None], args: argparse.Namespace) -> List[Row]:
    """The rows of all sizes.

    Args:
        forms: what to measure.
        check: of a form's name, its value and its gradient (numpy): raises if they are wrong.
    """
    sizes = args.elements or (QUICK if args.quick else SIZES)
    return [_row(size, forms, check, args) for size in sizes]


def _row(size: int, forms: Forms, check: Callable[[str, Any, Any], None], args: argparse.Namespace) -> Row:
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        start = tf.cast(tf.random.normal([size], seed=1), args.dtype)
        x = v1.get_variable('x', initializer=start, use_resource=True)
        session.run(v1.global_variables_initializer())
        runs: Dict[str, Tuple[Callable[[], Any], Callable[[], Any]]] = {}
        for name, form in forms.items():
            value = x.read_value()
            if args.unknown:
                value = v1.placeholder_with_default(value, None)
            y = form(value)
            gradient, = tf.gradients(y, value, grad_ys=y)
            check(name, *session.run([tf.cast(value, tf.float32), tf.cast(y, tf.float32), tf.cast(gradient, tf.float32)]))
            # One element leaves the session, so that nothing is pruned and nothing large copied
            runs[name] = (session.make_callable(tf.reshape(y, [-1])[:1]), session.make_callable(tf.reshape(gradient, [-1])[:1]))
        repeats = 1 if args.quick else max(1, min(200, 2 * 10 ** 6 // size))
        times: Dict[str, Tuple[List[float], List[float]]] = {name: ([], []) for name in forms}
        for number in range(2 if args.quick else args.rounds + 2):
            for name, both in runs.items():
                for run, found in zip(both, times[name]):
                    begin = time.perf_counter()
                    for _ in range(repeats):
                        run()
                    found.append((time.perf_counter() - begin) / repeats)
        medians = {name: [statistics.median(found[1 if args.quick else 2:]) for found in both] for name, both in times.items()}
    return Row(size, {name: each[0] for name, each in medians.items()}, {name: each[1] for name, each in medians.items()})


def report(op: str, rows: List[Row], args: argparse.Namespace) -> None:
    """Prints a table of the rows and the same as JSON. With --write, both go to the others' of this op into the files."""
    import tensorflow as tf

    kind = {'TensorFlow': tf.__version__, 'type': args.dtype, 'shape': 'unknown' if args.unknown else 'static',
            'memory': 'kept' if args.keep_memory else 'as it is'}
    made = [dict(kind, **row._asdict()) for row in rows]
    print(json.dumps(made))
    if args.write:
        others = [row for row in results.kept(op) if any(row[name] != value for name, value in kind.items())]
        made = sorted(others + made, key=lambda row: [str(row[name]) for name in kind] + [row['elements']])
    results.report(op, table(made, list(kind), base=next(iter(rows[0].forward))), made, args.write)


def table(rows: List[Dict[str, Any]], kind: List[str], base: str) -> str:
    """Milliseconds of the baseline, and how many times faster the other forms are: forward; forward and backward."""
    rest = sorted({name for row in rows for name in row['forward']} - {base}, key=lambda name: (name == 'x + 1', name))
    head = kind + ['elements', base + ', ms'] + rest + ['both: ' + base + ', ms'] + ['both: ' + name for name in rest]
    lines = []
    for row in rows:
        cells = [str(row[name]) for name in kind] + ['%d' % row['elements']]
        for part in (row['forward'], row['both']):
            cells += ['%.3g' % (part[base] * 1e3)]
            cells += ['%.2f' % (part[base] / part[name]) if name in part else '-' for name in rest]
        lines.append(cells)
    return results.markdown(head, lines)
