"""How fast the migration tool is, against TensorFlow's own tf_upgrade_v2 and against the floor.

    python benchmarks/tool_throughput.py --python ENV/bin/python --packages    prints tables
    python benchmarks/tool_throughput.py ... --share 10                        from every tenth folder, for less time
    python benchmarks/tool_throughput.py ... --write                           and puts them into benchmarks/RESULTS.md
    python benchmarks/tool_throughput.py ... --json FILE                       and all figures into a file

The corpus is the Python files of the site-packages of each --python, of each --corpus folder and, with --packages, of
the PyPI packages that docs/public_code.txt names. The floor reads each file, parses it with ast.parse while the garbage
collector is off, as the tool has it, and writes it. All sides run in turns, each in a process of its own, so that their
ratios hold although the machine may be busy; what tf_upgrade_v2 takes to import TensorFlow is counted apart. What both
tools write is checked.
"""
from __future__ import annotations

import argparse
import ast
import gc
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

import results
import tool_corpus
from tool_corpus import Corpus

TOOL = [sys.executable, str(tool_corpus.ROOT / 'tools' / 'convert_tf2npu' / 'main.py')]
FLOOR, OURS, BASELINE = 'floor', 'convert_tf2npu', 'tf_upgrade_v2'
_ROUNDS, _SLOW_ROUNDS, _STARTS = 7, 3, 20
_FAILURES = 'failures.txt'
_FRAMEWORKS = (b'tensorflow', b'keras', b'horovod', b'npu_', b'tf')
_IMPORT = 'from tensorflow.tools.compatibility import ast_edits, tf_upgrade_v2'
_GROWTH = (10, 100, 1000, 10000)


class Cost(NamedTuple):
    """What a process and its children took; the peak is that of the largest of them."""
    cpu_s: float
    wall_s: float
    peak_mb: float


Figures = Dict[str, Any]


def cost(command: Sequence[str], cache: Optional[pathlib.Path] = None) -> Cost:
    """Run a command to its end.

    Args:
        command: its words.
        cache: the folder for what users keep in ~/.cache.

    Raises:
        RuntimeError: it fails.
    """
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL='3', PYTHONDONTWRITEBYTECODE='')
    if cache:
        environment['XDG_CACHE_HOME'] = str(cache)
    with tempfile.TemporaryFile() as output:
        begin = time.perf_counter()
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begin
        process.returncode = status  # it is waited for already
        if status:
            output.seek(0)
            raise RuntimeError('%s failed:\n%s' % (' '.join(command), output.read()[-3000:].decode('utf-8', 'replace')))
    return Cost(used.ru_utime + used.ru_stime, wall_s, used.ru_maxrss / 1024)


def median(costs: Sequence[Cost]) -> Cost:
    """The median of each figure."""
    return Cost(*(statistics.median(each) for each in zip(*costs)))


class Bench:
    """The sides that are measured, and a folder to work in.

    Args:
        corpus: the files.
        work: a folder for what the sides write.
        upgrade: an interpreter that has TensorFlow, if there is one.
    """

    def __init__(self, corpus: Corpus, work: pathlib.Path, upgrade: Optional[str]) -> None:
        self.corpus, self.work, self.upgrade = corpus, work, upgrade

    def floor(self) -> Cost:
        """Reading, parsing and writing."""
        return self._writing(FLOOR, lambda target: [
            sys.executable, os.path.abspath(__file__), '--floor', str(self.corpus.folder), target])

    def ours(self, jobs: int = 1) -> Cost:
        """The tool, without its cache."""
        return self._writing(OURS, lambda target: TOOL + [
            '-i', str(self.corpus.folder), '-o', target, '-j', str(jobs), '--no-cache'])

    def baseline(self) -> Cost:
        """TensorFlow's tool."""
        return self._writing(BASELINE, lambda target: [
            str(self.upgrade), os.path.abspath(__file__), '--upgrade-tree', str(self.corpus.folder), target])

    def failures(self) -> int:
        """On how many files the baseline failed."""
        return int((self.work / BASELINE / _FAILURES).read_text())

    def again(self) -> List[Cost]:
        """The tool with an empty cache, and once more."""
        cache = self.work / 'cache'
        shutil.rmtree(str(cache), ignore_errors=True)
        command = TOOL + ['-i', str(self.corpus.folder), '-o', str(self.work / 'again'), '-j', '1']
        shutil.rmtree(str(self.work / 'again'), ignore_errors=True)
        return [cost(command, cache), cost(command, cache)]

    def _writing(self, name: str, command: Callable[[str], List[str]]) -> Cost:
        target = self.work / name
        shutil.rmtree(str(target), ignore_errors=True)
        return cost(command(str(target)), self.work / 'no cache')

    def check(self) -> None:
        """Look at what the last runs wrote.

        Raises:
            RuntimeError: something of it cannot be right.
        """
        names = [OURS] + ([BASELINE] if self.upgrade else [])
        found = tool_corpus.wrong(self.corpus.folder, {name: self.work / name for name in names}, _FRAMEWORKS)
        if found:
            raise RuntimeError('\n'.join(found[:20]))


def floor(source: str, target: str) -> None:
    """What no tool that reads, parses and writes Python files can do without."""
    gc.disable()
    warnings.simplefilter('ignore')
    for folder, _, names in os.walk(source):
        written = os.path.join(target, os.path.relpath(folder, source))
        os.makedirs(written)
        for name in names:
            with open(os.path.join(folder, name), 'rb') as stream:
                raw = stream.read()
            ast.parse(raw)
            with open(os.path.join(written, name), 'wb') as stream:
                stream.write(raw)


def upgrade_tree(source: str, target: str) -> None:
    """What tf_upgrade_v2 does with a folder, which ends where the first file does not please it: it fails on some of the
    syntax that came after Python 3.6. Here it goes on with the next one."""
    from tensorflow.tools.compatibility import ast_edits, tf_upgrade_v2

    upgrader = ast_edits.ASTCodeUpgrader(tf_upgrade_v2.TFAPIChangeSpec())
    failures = 0
    for path in tool_corpus.python_files(pathlib.Path(source)):
        written = pathlib.Path(target) / path.relative_to(source)
        written.parent.mkdir(parents=True, exist_ok=True)
        try:
            upgrader.process_file(str(path), str(written))
        except Exception:  # of any kind, from the library that it parses with
            failures += 1
            shutil.copy(str(path), str(written))
    (pathlib.Path(target) / _FAILURES).write_text(str(failures))


def throughput(bench: Bench, rounds: int, slow_rounds: int) -> Figures:
    """The sides, in turns, after each has run once."""
    sides: Dict[str, Callable[[], Cost]] = {
        FLOOR: bench.floor, OURS: bench.ours, 'two processes': lambda: bench.ours(2)}
    costs: Dict[str, List[Cost]] = {name: [] for name in sides}
    again: List[List[Cost]] = []
    for index in range(rounds + 1):
        for name, side in sides.items():
            costs[name].append(side())
        again.append(bench.again())
        if bench.upgrade and index < slow_rounds:
            costs.setdefault(BASELINE, []).append(bench.baseline())
    warm = {name: median(each[1:] if name != BASELINE else each) for name, each in costs.items()}
    lines = bench.corpus.lines
    found: Figures = {'files': bench.corpus.files, 'lines': lines, 'rounds': rounds, 'sides': {}}
    if bench.upgrade:
        found['import_cpu_s'] = cost([bench.upgrade, '-c', _IMPORT]).cpu_s
        found['baseline_fails_on'] = bench.failures()
        warm[BASELINE] = warm[BASELINE]._replace(cpu_s=warm[BASELINE].cpu_s - found['import_cpu_s'])
    for name, each in warm.items():
        found['sides'][name] = dict(each._asdict(), lines_per_cpu_s=lines / each.cpu_s,
                                    of_floor=each.cpu_s / warm[FLOOR].cpu_s)
    if bench.upgrade:
        found['slow_rounds'] = slow_rounds
        found['times_baseline'] = warm[BASELINE].cpu_s / warm[OURS].cpu_s
    found['two_processes_speedup'] = warm[OURS].wall_s / warm['two processes'].wall_s
    first, second = median([pair[0] for pair in again[1:]]), median([pair[1] for pair in again[1:]])
    found['again'] = {'first_s': first.wall_s, 'second_s': second.wall_s, 'times_faster': first.wall_s / second.wall_s}
    return found


def start(starts: int) -> Figures:
    """Milliseconds of --help, and of Python alone, in turns."""
    costs: Dict[str, List[Cost]] = {'help': [], 'python': []}
    for _ in range(starts + 1):
        costs['help'].append(cost(TOOL + ['--help']))
        costs['python'].append(cost([sys.executable, '-c', 'pass']))
    return {name + '_ms': median(each[1:]).wall_s * 1e3 for name, each in costs.items()}


def no_concern(corpus: Corpus, rounds: int) -> Figures:
    """Files that mention nothing a rule cares about: CPU seconds of the tool, and of parsing them.

    In one process, so that what a process takes to start is not counted.
    """
    sys.path.insert(0, str(tool_corpus.ROOT / 'tools'))
    from convert_tf2npu.convert import Converter

    raws = [path.read_bytes() for path in tool_corpus.python_files(corpus.folder)]
    converter = Converter()
    raws = [raw for raw in raws if not converter.project.concerns(raw)]
    taken: Dict[str, List[float]] = {'ours': [], 'parse': []}
    gc.disable()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for _ in range(rounds + 1):
            for name, side in (('ours', converter.convert), ('parse', ast.parse)):
                begin = time.process_time()
                for raw in raws:
                    side(raw)  # type: ignore[operator]
                taken[name].append(time.process_time() - begin)
    gc.enable()
    ours, parse = (statistics.median(taken[name][1:]) for name in ('ours', 'parse'))
    return {'files': len(raws), 'ours_s': ours, 'parse_s': parse, 'of_parse': ours / parse}


def growth(sources: Dict[str, str], work: pathlib.Path, counts: Sequence[int]) -> List[Figures]:
    """More and more files: seconds and memory of one process."""
    found: List[Figures] = []
    for count in counts:
        corpus = tool_corpus.copied(sources, work / ('%d files' % count), most=count)
        each = cost(TOOL + ['-i', str(corpus.folder), '-o', str(work / 'grown'), '-j', '1', '--no-cache'])
        shutil.rmtree(str(work / 'grown'))
        shutil.rmtree(str(corpus.folder))
        found.append(dict(each._asdict(), files=corpus.files, lines=corpus.lines,
                          lines_per_cpu_s=corpus.lines / each.cpu_s))
    return found


def text_of(found: Figures) -> str:
    """The figures as Markdown."""
    all_of = found['throughput']
    lines = ['%d files, %d lines; median of %d rounds%s.' % (
        all_of['files'], all_of['lines'], all_of['rounds'],
        ', of tf_upgrade_v2 %d, which fails on %d of the files; its import of TensorFlow, %.1f s, is left out' % (
            all_of['slow_rounds'], all_of['baseline_fails_on'], all_of['import_cpu_s'])
        if 'slow_rounds' in all_of else ''), '',
        '| side | lines per CPU second | CPU time / floor | seconds | peak MB |', '| --- | --- | --- | --- | --- |']
    for name, each in all_of['sides'].items():
        lines.append('| %s | %d | %.2f | %.2f | %.0f |' % (
            name, each['lines_per_cpu_s'], each['of_floor'], each['wall_s'], each['peak_mb']))
    lines += ['', '| what | measured | against | ratio |', '| --- | --- | --- | --- |']
    if 'times_baseline' in all_of:
        lines.append('| CPU time, one process | %.1f s | %.1f s, tf_upgrade_v2 | %.1f times faster |' % (
            all_of['sides'][OURS]['cpu_s'], all_of['sides'][BASELINE]['cpu_s'], all_of['times_baseline']))
    again, start_, idle = all_of['again'], found['start'], found['no_concern']
    lines += [
        '| two processes | %.2f s | %.2f s, one process | %.2f times faster |' % (
            all_of['sides']['two processes']['wall_s'], all_of['sides'][OURS]['wall_s'],
            all_of['two_processes_speedup']),
        '| a second run, nothing changed | %.2f s | %.2f s, the first | %.1f times faster |' % (
            again['second_s'], again['first_s'], again['times_faster']),
        '| %d files without TensorFlow | %.2f s | %.2f s, ast.parse of them | %.2f |' % (
            idle['files'], idle['ours_s'], idle['parse_s'], idle['of_parse']),
        '| `--help` | %.0f ms | %.0f ms, Python alone | %.1f |' % (
            start_['help_ms'], start_['python_ms'], start_['help_ms'] / start_['python_ms']),
        '', '| files | lines | CPU seconds | lines per CPU second | peak MB |', '| --- | --- | --- | --- | --- |']
    lines += ['| %d | %d | %.2f | %d | %.0f |' % (each['files'], each['lines'], each['cpu_s'], each['lines_per_cpu_s'],
                                               each['peak_mb']) for each in found['growth']]
    return '\n'.join(lines) + '\n'


def main(argv: List[str]) -> int:
    """Measures, and says or writes what it found."""
    if argv[:1] in (['--floor'], ['--upgrade-tree']):
        (floor if argv[0] == '--floor' else upgrade_tree)(*argv[1:])
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    parser.add_argument('--python', action='append', default=[],
                        help='an interpreter, whose site-packages are measured on')
    parser.add_argument('--corpus', action='append', default=[], help='a folder of Python files to measure on')
    parser.add_argument('--packages', action='store_true', help='measure on the packages of docs/public_code.txt, too')
    parser.add_argument('--share', type=int, default=1, help='take every so-many-th folder of the corpus')
    parser.add_argument('--upgrade', default=sys.executable if importlib.util.find_spec('tensorflow') else None,
                        help='an interpreter that has TensorFlow 2, for tf_upgrade_v2; by default this one')
    parser.add_argument('--json', help='write all figures into this file')
    parser.add_argument('--write', action='store_true', help='put the tables into benchmarks/RESULTS.md')
    parser.add_argument('--quick', action='store_true', help='once each: to see that it works')
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        folders = [tool_corpus.site_packages(python) for python in args.python] + args.corpus
        sources = {'corpus%d' % index: path for index, path in enumerate(folders)}
        if args.packages:
            sources.update(tool_corpus.packages(work / 'packages'))
        if not sources:
            parser.error('what shall be measured? Give --python, --corpus or --packages')
        found = measure(sources, work, args)
    text = '%s\n\n%s' % (results.machine(('tensorflow',)), text_of(found))
    print(text)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(found, indent=1) + '\n', encoding='utf-8')
    if args.write:
        results.write('tool_throughput', text)
    return 0


def measure(sources: Dict[str, str], work: pathlib.Path, args: argparse.Namespace) -> Figures:
    """All figures."""
    corpus = tool_corpus.copied(sources, work / 'corpus', args.share)
    bench = Bench(corpus, work, args.upgrade)
    found = {'throughput': throughput(bench, *((1, 1) if args.quick else (_ROUNDS, _SLOW_ROUNDS)))}
    bench.check()
    found['start'] = start(2 if args.quick else _STARTS)
    found['no_concern'] = no_concern(corpus, 1 if args.quick else _ROUNDS)
    found['growth'] = growth(sources, work, _GROWTH[:1] if args.quick else _GROWTH)
    return found


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
