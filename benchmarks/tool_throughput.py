"""Throughput of the migration tool, against TensorFlow's tf_upgrade_v2 and against the floor.

    python benchmarks/tool_throughput.py --python ENV/bin/python --packages    prints tables
    python benchmarks/tool_throughput.py ... --share 60                        from every 60th folder, for less time
    python benchmarks/tool_throughput.py ... --larger 10                       tool and floor also on every tenth
    python benchmarks/tool_throughput.py ... --write                           and keeps them

The corpus is the Python files of the site-packages of each --python, of each --corpus folder and, with --packages, of
the PyPI packages that docs/public_code.txt names. Each --python runs all sides on what it can read of that; without
one, this Python does. The floor reads each file, parses it with ast.parse while the garbage collector is off, as the
tool has it, and writes it, in one process and in two. All sides run in turns, each in a process of its own, so that
their ratios hold although the machine may be busy; what tf_upgrade_v2 takes to import TensorFlow is counted apart. What
both tools write is checked. With --larger the floor and the tool also run on a larger part, where the start of a
process counts for less, and tf_upgrade_v2 once.
"""

from __future__ import annotations

import argparse
import ast
import gc
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Any, Callable, Dict, Iterator

import results
import tool_corpus
import tool_runs
from tool_corpus import Corpus
from tool_runs import Cost, cost, median

FLOOR, OURS, BASELINE = "floor", "convert_tf2npu", "tf_upgrade_v2"
_TWO = {FLOOR: "floor, two processes", OURS: "convert_tf2npu, two processes"}
_ROUNDS, _SLOW_ROUNDS, _STARTS = 7, 3, 20
_FRAMEWORKS = (b"tensorflow", b"keras", b"horovod", b"npu_", b"tf")
_IMPORT = "from tensorflow.tools.compatibility import ast_edits, tf_upgrade_v2"
_VERSIONS = (
    "import platform, importlib.util as u; print(platform.python_version()); "
    'print(__import__("tensorflow").__version__ if u.find_spec("tensorflow") else "")'
)
Figures = Dict[str, Any]


class Bench:
    """The sides that are measured with one Python, and a folder to work in.

    Args:
        corpus: the files.
        work: a folder for what the sides write.
        python: the interpreter.
    """

    def __init__(self, corpus: Corpus, work: pathlib.Path, python: str) -> None:
        self.work, self.python = work, python
        self.corpus = tool_corpus.readable_by(corpus, python)
        said = subprocess.run(
            [python, "-c", _VERSIONS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True
        ).stdout
        self.version, self.tensorflow = said.split("\n")[:2]

    def floor(self, processes: int = 1) -> Cost:
        """Reading, parsing and writing."""
        return self._writing(
            FLOOR, lambda source, target: tool_runs.floor_command(self.python, source, target, processes)
        )

    def ours(self, processes: int = 1) -> Cost:
        """The tool, without its cache."""
        return self._writing(
            OURS,
            lambda source, target: tool_runs.tool(
                self.python, "-i", source, "-o", target, "-j", str(processes), "--no-cache"
            ),
        )

    def baseline(self) -> Cost:
        """TensorFlow's tool."""
        return self._writing(BASELINE, lambda source, target: tool_runs.upgrade_command(self.python, source, target))

    def failures(self) -> int:
        """On how many files the baseline failed."""
        return int((self.work / BASELINE / tool_runs.FAILURES).read_text())

    def again(self) -> list[Cost]:
        """The tool with an empty cache, and once more."""
        cache = self.work / "cache"
        self._put_away(cache)
        self._put_away(self.work / "again")
        command = tool_runs.tool(self.python, "-i", str(self.corpus.folder), "-o", str(self.work / "again"), "-j", "1")
        return [cost(command, cache), cost(command, cache)]

    def _writing(self, name: str, command: Callable[[str, str], list[str]]) -> Cost:
        target = self.work / name
        self._put_away(target)
        return cost(command(str(self.corpus.folder), str(target)), self.work / "no cache")

    def _put_away(self, path: pathlib.Path) -> None:
        """Make way for the next run; it is deleted at the very end, because a disk is busy with that for seconds."""
        if path.exists():
            path.rename(pathlib.Path(tempfile.mkdtemp(dir=str(self.work))) / path.name)

    def check(self) -> None:
        """Look at what the last runs wrote.

        Raises:
            RuntimeError: something of it cannot be right.
        """
        names = [OURS] + ([BASELINE] if self.tensorflow else [])
        found = tool_corpus.wrong(self.corpus.folder, {name: self.work / name for name in names}, _FRAMEWORKS)
        if found:
            raise RuntimeError("\n".join(found[:20]))


def throughput(bench: Bench, rounds: int, slow_rounds: int) -> Figures:
    """The sides, in turns, after each has run once."""
    sides: dict[str, Callable[[], Cost]] = {
        FLOOR: bench.floor,
        OURS: bench.ours,
        _TWO[FLOOR]: lambda: bench.floor(2),
        _TWO[OURS]: lambda: bench.ours(2),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in sides}
    again: list[list[Cost]] = []
    for index in range(rounds + 1):
        for name, side in sides.items():
            costs[name].append(side())
        again.append(bench.again())
        if bench.tensorflow and index < slow_rounds:
            costs.setdefault(BASELINE, []).append(bench.baseline())
    warm = {name: median(each[1:] if name != BASELINE else each) for name, each in costs.items()}
    lines = bench.corpus.lines
    found: Figures = {
        "python": bench.version,
        "tensorflow": bench.tensorflow,
        "files": bench.corpus.files,
        "lines": lines,
        "rounds": rounds,
        "sides": {},
    }
    if bench.tensorflow:
        found["import_cpu_s"] = cost([bench.python, "-c", _IMPORT]).cpu_s
        found["baseline_fails_on"] = bench.failures()
        warm[BASELINE] = warm[BASELINE]._replace(cpu_s=warm[BASELINE].cpu_s - found["import_cpu_s"])
    for name, each in warm.items():
        found["sides"][name] = dict(
            each._asdict(), lines_per_cpu_s=lines / each.cpu_s, of_floor=each.cpu_s / warm[FLOOR].cpu_s
        )
    if bench.tensorflow:
        found["slow_rounds"] = slow_rounds
        found["times_baseline"] = warm[BASELINE].cpu_s / warm[OURS].cpu_s
    found["two_processes"] = _two(warm)
    first, second = median([pair[0] for pair in again[1:]]), median([pair[1] for pair in again[1:]])
    found["again"] = {"first_s": first.wall_s, "second_s": second.wall_s, "times_faster": first.wall_s / second.wall_s}
    return found


def _two(costs: dict[str, Cost]) -> Figures:
    """Return the gain from two processes, in wall time and CPU time, for the tool and the floor."""
    return {
        "one_s": costs[OURS].wall_s,
        "two_s": costs[_TWO[OURS]].wall_s,
        "speedup": costs[OURS].wall_s / costs[_TWO[OURS]].wall_s,
        "more_cpu": costs[_TWO[OURS]].cpu_s / costs[OURS].cpu_s,
        "limit": costs[FLOOR].wall_s / costs[_TWO[FLOOR]].wall_s,
        "limit_more_cpu": costs[_TWO[FLOOR]].cpu_s / costs[FLOOR].cpu_s,
    }


def larger(bench: Bench, rounds: int, import_cpu_s: float) -> Figures:
    """The floor and the tool on another corpus, in one process and in two, and the baseline once."""
    costs: dict[str, list[Cost]] = {name: [] for name in (FLOOR, OURS, *_TWO.values())}
    for _ in range(rounds + 1):
        for processes in (1, 2):
            for name, side in ((FLOOR, bench.floor), (OURS, bench.ours)):
                costs[name if processes == 1 else _TWO[name]].append(side(processes))
    warm = {name: median(each[1:]) for name, each in costs.items()}
    found = dict(
        _two(warm),
        files=bench.corpus.files,
        lines=bench.corpus.lines,
        cpu_s=warm[OURS].cpu_s,
        floor_cpu_s=warm[FLOOR].cpu_s,
        of_floor=warm[OURS].cpu_s / warm[FLOOR].cpu_s,
        peak_mb=warm[OURS].peak_mb,
    )
    if bench.tensorflow:
        found["baseline_cpu_s"] = bench.baseline().cpu_s - import_cpu_s
        found["times_baseline"] = found["baseline_cpu_s"] / found["cpu_s"]
    return found


def start(python: str, starts: int) -> Figures:
    """Milliseconds of --help, and of Python alone, in turns."""
    costs: dict[str, list[Cost]] = {"help": [], "python": []}
    for _ in range(starts + 1):
        costs["help"].append(cost(tool_runs.tool(python, "--help")))
        costs["python"].append(cost([python, "-c", "pass"]))
    return {name + "_ms": median(each[1:]).wall_s * 1e3 for name, each in costs.items()}


def no_concern(corpus: Corpus, rounds: int) -> Figures:
    """Files that mention nothing a rule cares about: CPU seconds of the tool, and of parsing them.

    In one process, so that what a process takes to start is not counted.
    """
    sys.path.insert(0, str(tool_corpus.ROOT / "tools"))
    from convert_tf2npu.engine.converter import Converter

    raws = [path.read_bytes() for path in tool_corpus.python_files(corpus.folder)]
    converter = Converter()
    raws = [raw for raw in raws if not converter.project.may_concern_rules(raw)]
    taken: dict[str, list[float]] = {"ours": [], "parse": []}
    gc.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(rounds + 1):
            for name, side in (("ours", converter.convert), ("parse", ast.parse)):
                begin = time.process_time()
                for raw in raws:
                    side(raw)  # type: ignore[operator]
                taken[name].append(time.process_time() - begin)
    gc.enable()
    ours, parse = (statistics.median(taken[name][1:]) for name in ("ours", "parse"))
    return {"files": len(raws), "ours_s": ours, "parse_s": parse, "of_parse": ours / parse}


def text_of(found: Figures) -> str:
    """The figures of one Python as Markdown."""
    head = f"### Python {found['python']}"
    rounds = f"{found['files']:.0f} files, {found['lines']:.0f} lines; median of {found['rounds']:.0f} rounds"
    if found["tensorflow"]:
        head += f", TensorFlow {found['tensorflow']}"
        rounds += f", of {BASELINE} {found['slow_rounds']}, which fails on {found['baseline_fails_on']} of the files; "
        rounds += f"its import of TensorFlow, {found['import_cpu_s']:.1f} s, is left out"
    sides = [
        (
            name,
            f"{each['lines_per_cpu_s']:.0f}",
            f"{each['of_floor']:.2f}",
            f"{each['wall_s']:.2f}",
            f"{each['peak_mb']:.0f}",
        )
        for name, each in found["sides"].items()
    ]
    columns = ("side", "lines per CPU second", "CPU time / floor", "seconds", "peak MB")
    others = results.markdown(("what", "measured", "against", "ratio"), list(_comparisons(found)))
    return f"{head}\n\n{rounds}.\n\n{results.markdown(columns, sides)}\n{others}"


def _comparisons(found: Figures) -> Iterator[tuple[str, ...]]:
    """Yield the rows that compare two figures."""
    if found["tensorflow"]:
        ours, theirs = (found["sides"][name]["cpu_s"] for name in (OURS, BASELINE))
        faster = f"{found['times_baseline']:.1f} times faster"
        yield "CPU time, one process", f"{ours:.1f} s", f"{theirs:.1f} s, tf_upgrade_v2", faster
    yield _row_of_two("two processes", found["two_processes"])
    large = found.get("larger")
    if large:
        what = "CPU time, {files} files of {lines} lines, one process".format(**large)
        ratio = "{of_floor:.2f}, at a peak of {peak_mb:.0f} MB".format(**large)
        yield what, f"{large['cpu_s']:.1f} s", f"{large['floor_cpu_s']:.1f} s, the floor", ratio
        if found["tensorflow"]:
            once = f"{large['baseline_cpu_s']:.1f} s, tf_upgrade_v2, once"
            faster = f"{large['times_baseline']:.1f} times faster"
            yield "these files", f"{large['cpu_s']:.1f} s", once, faster
        yield _row_of_two("two processes, these files", large)
    first, second, times = (found["again"][name] for name in ("first_s", "second_s", "times_faster"))
    yield "a second run, nothing changed", f"{second:.2f} s", f"{first:.2f} s, the first", f"{times:.1f} times faster"
    shown, alone = found["start"]["help_ms"], found["start"]["python_ms"]
    yield "`--help`", f"{shown:.0f} ms", f"{alone:.0f} ms, Python alone", f"{shown / alone:.1f}"
    if "no_concern" in found:
        files, ours, parse, ratio = (found["no_concern"][name] for name in ("files", "ours_s", "parse_s", "of_parse"))
        yield f"{files} files without TensorFlow", f"{ours:.2f} s", f"{parse:.2f} s, ast.parse of them", f"{ratio:.2f}"


def _row_of_two(what: str, two: Figures) -> tuple[str, ...]:
    return (
        what,
        "{:.2f} s".format(two["two_s"]),
        "{:.2f} s, one process".format(two["one_s"]),
        "{speedup:.2f} times faster with {more_cpu:.2f} times the CPU time; the floor {limit:.2f} with "
        "{limit_more_cpu:.2f}".format(**two),
    )


def measure(sources: dict[str, str], work: pathlib.Path, python: str, args: argparse.Namespace) -> Figures:
    """All figures of one Python."""
    bench = Bench(tool_corpus.copied(sources, work / "corpus", args.share), work, python)
    found = throughput(bench, *((1, 1) if args.quick else (_ROUNDS, _SLOW_ROUNDS)))
    bench.check()
    found["start"] = start(python, 2 if args.quick else _STARTS)
    if python == sys.executable:
        found["no_concern"] = no_concern(bench.corpus, 1 if args.quick else _ROUNDS)
    if args.larger:
        large = Bench(tool_corpus.copied(sources, work / "larger", args.larger), work, python)
        found["larger"] = larger(large, 1 if args.quick else _ROUNDS, found.get("import_cpu_s", 0.0))
    return found


def main(argv: list[str]) -> int:
    """Measure, and print or write the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    tool_corpus.add_arguments(parser)
    parser.add_argument("--share", type=int, default=1, help="take every so-many-th folder of the corpus")
    parser.add_argument("--larger", type=int, metavar="SHARE", help="time the tool and the floor on such a share, too")
    parser.add_argument("--write", action="store_true", help="put the tables into benchmarks/RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="once each: to see that it works")
    args = parser.parse_args(argv)
    found: list[Figures] = []
    with tempfile.TemporaryDirectory() as folder:
        sources = tool_corpus.chosen(args, parser, pathlib.Path(folder))
        for index, python in enumerate(args.python or [sys.executable]):
            found.append(measure(sources, pathlib.Path(folder) / str(index), python, args))
    results.report("tool_throughput", "\n".join(text_of(each) for each in found), found, args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
