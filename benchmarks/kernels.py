"""Benchmarks of single ops: interleaved runs of several forms of an op in a session, and their table.

    python benchmarks/gelu.py                   prints a table and the same as JSON; takes two minutes
    python benchmarks/gelu.py --write           and puts them to those of other TensorFlows in benchmarks/RESULTS.md

Each variant is measured in a process of its own, in which all forms run in
turns, so that their ratios hold although the machine may be busy. A form's
results are compared with the baseline's first.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any, Callable, Dict, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.update(NPU_SHIM_FALLBACK="silent", TF_CPP_MIN_LOG_LEVEL="3")

from benchmarks import results  # noqa: E402


class Variant(NamedTuple):
    """The tensors and the memory setting of a measurement."""

    dtype: str
    is_static: bool  # whether the graph knows the shape
    keeps_memory: bool  # whether TensorFlow keeps freed memory, for all forms, as they share a process
    sizes: tuple[int, ...]  # numbers of elements


VARIANTS = {
    "float32": Variant(
        "float32", True, False, (100, 1000, 10**4, 3 * 10**4, 65535, 8 * 10**4, 10**5, 10**6, 10**7, 4 * 10**7)
    ),
    "float32, memory kept": Variant("float32", True, True, (10**5, 10**6, 10**7, 4 * 10**7)),
    "float32, unknown shape": Variant("float32", False, False, (1000, 3 * 10**4, 10**5, 10**6, 10**7)),
    "float16": Variant("float16", True, False, (10**4, 10**6)),
    "bfloat16": Variant("bfloat16", True, False, (10**4, 10**6)),
}
QUICK = (1000, 10**5)
CHECKED = 10**6  # so many elements are compared
_HERE = "BENCHMARK_VARIANT"  # set in the process that measures a variant

# Of a float tensor: the op's result. The first form is the baseline; 'limit' what limit() makes.
Forms = Dict[str, Callable[[Any], Any]]
# Of a form's name, the argument, its value and its gradient (numpy), with the value as the incoming gradient: raises if
# they are wrong.
Check = Callable[[str, Any, Any, Any], None]


class Row(NamedTuple):
    """One tensor size: seconds of the forward pass and of both, and the tensors kept between them, by form."""

    elements: int
    forward: dict[str, float]
    both: dict[str, float]
    kept: dict[str, float]


def limit(op: str, backward: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """The form that moves what every implementation has to, and no more: x + 1, and a gradient of one op too.

    As in any graph, the second op may write over dy, which nothing else needs.

    Args:
        op: the name of the benchmark; each can have one limit in a process.
        backward: of x and dy. Not by another addition, which TensorFlow's graph passes make one with x + 1.
    """
    import tensorflow as tf

    name = "LimitOf" + op.capitalize()
    tf.RegisterGradient(name)(lambda of, dy: (backward(of.inputs[0], dy), None))

    def form(x: Any) -> Any:
        with tf.compat.v1.get_default_graph().gradient_override_map({"AddV2": name}):
            return tf.raw_ops.AddV2(x=x, y=tf.cast(1, x.dtype))

    return form


def main(op: str, doc: str, argv: list[str], forms: Callable[[], Forms], check: Check) -> int:
    """The command of a benchmark.

    Args:
        op: its name.
        doc: what it does.
        argv: the command line.
        forms: makes what is to be measured; called where TensorFlow may be imported.
        check: compares a form's results.
    """
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="two sizes, few runs: to see that it works")
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), help="these only")
    args = parser.parse_args(argv)
    if _HERE in os.environ:
        print(json.dumps(_rows(os.environ[_HERE], forms, check, args.quick)))
        return 0
    rows: list[dict[str, Any]] = []
    for name in args.variants:
        print(name, file=sys.stderr)
        rows += _in_a_process(op, name, args.quick)
    order = list(rows[0]["forward"])  # the baseline first; rows that were written down before have lost it
    if args.write:
        made = {(row["TensorFlow"], _name(row)) for row in rows}
        rows += [row for row in results.kept(op) if (row["TensorFlow"], _name(row)) not in made]
    rows.sort(
        key=lambda row: (
            [int(part) for part in row["TensorFlow"].split(".")[:2]],
            list(VARIANTS).index(_name(row)),
            row["elements"],
        )
    )
    print(json.dumps(rows))
    results.report(op, _tables(rows, order), rows, args.write)
    return 0


def _in_a_process(op: str, variant: str, quick: bool) -> list[dict[str, Any]]:
    command = [sys.executable, str(ROOT / "benchmarks" / (op + ".py"))] + ["--quick"] * quick
    done = subprocess.run(command, env=dict(os.environ, **{_HERE: variant}), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{done.stderr[-3000:]}\n{op}, {variant} failed")
    return json.loads(done.stdout.splitlines()[-1])


def _name(row: dict[str, Any]) -> str:
    """The variant of a row."""
    wanted = (row["type"], row["shape"] == "static", row["memory"] == "kept")
    return next(name for name, variant in VARIANTS.items() if variant[:3] == wanted)


def _rows(name: str, forms: Callable[[], Forms], check: Check, quick: bool) -> list[dict[str, Any]]:
    """The rows of a variant, measured in this process."""
    variant = VARIANTS[name]
    os.environ["NPU_SHIM_MEMORY"] = "kept" if variant.keeps_memory else "returned"  # which forms() installs
    import tensorflow as tf

    tf.compat.v1.disable_eager_execution()
    kind = {
        "TensorFlow": tf.__version__,
        "type": variant.dtype,
        "shape": "static" if variant.is_static else "unknown",
        "memory": "kept" if variant.keeps_memory else "as it is",
    }
    made = forms()
    sizes = QUICK if quick else variant.sizes
    return [dict(kind, **_row(size, variant, made, check, quick)._asdict()) for size in sizes]


def _row(size: int, variant: Variant, forms: Forms, check: Check, quick: bool) -> Row:
    # What is small is built anew several times: by chance, of two graphs alike one may be a fifth faster for good
    builds, warm_up, rounds = (
        (1, 1, 1) if quick else (6, 5, 40) if size < 10**6 else (1, 2, 15) if size < 10**7 else (1, 1, 7)
    )
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in forms}
    for build in range(builds):
        built = _times(size, variant, forms, check, warm_up, rounds, quick, backwards=build % 2 == 1)
        for name, passes in built.items():
            for found, new in zip(times[name], passes):
                found += new
    forward, both = [{name: statistics.median(found[part]) for name, found in times.items()} for part in (0, 1)]
    kept = {name: _kept(size, variant.dtype, form) for name, form in forms.items()} if variant.is_static else {}
    return Row(size, forward, both, kept)


def _times(
    size: int, variant: Variant, forms: Forms, check: Check, warm_up: int, rounds: int, quick: bool, backwards: bool
) -> dict[str, tuple[list[float], list[float]]]:
    """Return by form the seconds of its forward pass and of both passes in each round, of graphs built for it; in the
    order of the forms, or backwards."""
    import tensorflow as tf

    v1 = tf.compat.v1
    names = sorted(forms, key=list(forms).index, reverse=backwards)
    with tf.Graph().as_default(), v1.Session() as session:
        start = tf.cast(tf.random.normal([size], seed=1), variant.dtype)
        x = v1.get_variable("x", initializer=start, use_resource=True)
        session.run(v1.global_variables_initializer())
        runs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {}
        for name in names:
            value = x.read_value()
            if not variant.is_static:
                value = v1.placeholder_with_default(value, None)
            y = forms[name](value)
            (gradient,) = tf.gradients(y, value, grad_ys=y)
            flat = [tf.reshape(tensor, [-1]) for tensor in (value, y, gradient)]
            check(name, *session.run([tf.cast(tensor[:CHECKED], tf.float32) for tensor in flat]))
            # One element leaves the session, so that nothing is pruned and nothing large copied
            runs[name] = session.make_callable(flat[1][:1]), session.make_callable(flat[2][:1])
        # Short rounds, as how fast a thread wakes up changes every few milliseconds
        repeats = 1 if quick else max(1, min(20, 2 * 10**5 // size))
        times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in names}
        for _ in range(warm_up + rounds):
            for name, passes in runs.items():
                for run, found in zip(passes, times[name]):
                    begin = time.perf_counter()
                    for _ in range(repeats):
                        run()
                    found.append((time.perf_counter() - begin) / repeats)
    return {name: (forward[warm_up:], both[warm_up:]) for name, (forward, both) in times.items()}


def _kept(size: int, dtype: str, form: Callable[[Any], Any]) -> float:
    """Return the number of tensors of the argument's size that the backward pass reads of the forward pass."""
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        x, dy = tf.compat.v1.placeholder(dtype, [size]), tf.compat.v1.placeholder(dtype, [size])
        y = form(x)
        forward = set(graph.get_operations())
        waiting, seen, read = [tf.gradients(y, x, grad_ys=dy)[0].op], set(), set()
        while waiting:
            op = waiting.pop()
            for tensor in op.inputs:
                if tensor.op in forward:
                    read.add(tensor.name)
                elif tensor.op not in seen:
                    seen.add(tensor.op)
                    waiting.append(tensor.op)
        tensors = [graph.get_tensor_by_name(name) for name in read - {dy.name}]
        return sum(tensor.dtype.size for tensor in tensors if tensor.shape.num_elements() == size) / x.dtype.size


def _tables(rows: list[dict[str, Any]], order: list[str]) -> str:
    """A table for each TensorFlow: milliseconds of the baseline, and how many times faster the other forms are.

    Args:
        rows: of all variants.
        order: of the forms, the baseline first; others come last.
    """
    text = []
    for version in dict.fromkeys(row["TensorFlow"] for row in rows):
        its = [row for row in rows if row["TensorFlow"] == version]
        base, *rest = [name for name in order if name in its[0]["forward"]] + [
            name for name in its[0]["forward"] if name not in order
        ]
        head = ["tensor", "elements", base + ", ms"] + rest
        head += [f"both: {base}, ms"] + rest + ["kept: " + base, "ours"]
        lines = []
        for row in its:
            cells = [_name(row), "{:,}".format(row["elements"])]
            for part in (row["forward"], row["both"]):
                cells.append("%.3g" % (part[base] * 1e3))
                cells += ["%.2f" % (part[base] / part[name]) if name in part else "-" for name in rest]
            cells += ["{:.2g}".format(row["kept"][name]) if row.get("kept") else "-" for name in (base, "ours")]
            lines.append(cells)
        text.append(f"TensorFlow {version}\n\n{results.markdown(head, lines)}")
    return "\n".join(text)
