"""Count the places that are left to people in the programs of the record, by rule.

``python docs/record_places.py`` takes the programs of record/programs.toml that run with the TensorFlow of this Python.
It observes a run of each, as make_record.py does, converts it with and without what the run showed, and writes the
places by rule to record/places.tsv and the pages. Nothing is verified, which takes less time than make_record.py.
"""

from __future__ import annotations

import collections
import datetime
import os
import shlex
import subprocess
import sys
from typing import NamedTuple, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import verified  # noqa: E402
from record_list import Program, read_programs  # noqa: E402

_TIMEOUT = 600  # seconds of a run
_FACTS = "facts.json"
_BEGIN, _END = "<!-- made by docs/record_places.py -->\n", "<!-- end of the places -->\n"
_PAGES = tuple(os.path.join(HERE, *folder, "record.md") for folder in ((), ("zh",)))
_COLUMNS = (
    ("rule", "规则"),
    ("programs", "程序"),
    ("left without facts", "无观察结果时"),
    ("left in reached code", "已执行的代码中"),
    ("left in code not reached", "未执行的代码中"),
)


class Places(NamedTuple):
    """The places that are left in a program, a row of places.tsv.

    Attributes:
        name: of the program.
        ran: the commit that ran.
        places: for each rule its code, the places without facts, and with them in reached code and in other code.
        date, version: of the count, the commit of npu_shim.
    """

    name: str
    ran: str
    places: str
    date: str
    version: str

    @property
    def counts(self) -> dict[str, tuple[int, int, int]]:
        """The numbers by rule."""
        parts = [part.split() for part in self.places.split("; ") if part]
        return {code: (int(before), int(reached), int(others)) for code, before, reached, others in parts}


def kept(programs: Sequence[Program]) -> verified.Kept:
    """Return the counts of a list."""
    return verified.Kept(os.path.join("record", "places.tsv"), Places, [program.name for program in programs])


def observed(program: Program, sources: str, work: str) -> str:
    """Observe a program, and return the commit that ran.

    Args:
        program: which.
        sources: the folder of the clones.
        work: an empty folder.
    Raises:
        RuntimeError: the data of the program cannot be made, or its run fails.
    """
    commit = verified.project(program, sources, os.path.join(work, "original"))
    start, facts = os.path.join(work, "original", program.start), os.path.join(work, _FACTS)
    for arguments in program.observed:
        command = ["-m", "npu_shim", "observe", "-o", facts, *arguments]
        verified.run(command, start, codes=(0,), timeout=_TIMEOUT)
    return commit


def counted(program: Program, commit: str, work: str) -> Places:
    """Return the count of a program that was observed.

    Args:
        program: which.
        commit: that ran.
        work: the folder of ``observed()``.
    """
    from npu_shim.import_hook import migrated_run
    from npu_shim.rehearsal.migrating.program import Program as MigratedProgram

    facts_path = os.path.join(work, _FACTS)
    rules, start = ["-d", "auto", *shlex.split(program.options)], os.path.join(work, "original", program.start)
    counts: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0])
    for options in rules, [*rules, "--facts", facts_path]:
        arguments = migrated_run.rule_arguments(options)
        from convert_tf2npu.api import read_facts

        facts = read_facts(facts_path)
        files = [os.path.join(facts.root, name) for name in facts.files]
        root = os.path.join(start, program.project) if program.project else None
        migrated = MigratedProgram(os.path.join(start, program.script), arguments, files, root)
        for place in migrated.places_left():
            counts[place.code][0 if options is rules else 1 if place.reached else 2] += 1
    texts = [" ".join(map(str, (code, *counts[code]))) for code in sorted(counts)]
    return Places(program.name, commit, "; ".join(texts), datetime.date.today().isoformat(), verified.own_commit())


def table(programs: Sequence[Program], chinese: bool) -> str:
    """Return the counts by rule, and what they are of."""
    results = list(kept(programs).read().values())
    totals: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0, 0])
    for result in results:
        for code, counts in result.counts.items():
            totals[code] = [total + more for total, more in zip(totals[code], (1, *counts))]
    rows: list[list[object]] = [[code, *totals[code]] for code in sorted(totals, key=lambda code: -totals[code][1])]
    sums = [sum(numbers) for numbers in list(zip(*totals.values()))[1:]] or [0, 0, 0]
    most = max((sum(numbers[1] for numbers in result.counts.values()) for result in results), default=0)
    if chinese:
        head = f"在 {len(results)} 个程序中按规则统计。已执行的代码中剩余最多的一个程序有 {most} 处。\n"
    else:
        head = f"By rule, in {len(results)} programs. The program with the most places in reached code has {most}.\n"
    rows.append(["合计" if chinese else "total", len(results), *sums])
    return f"{head}\n{verified.markdown([names[chinese] for names in _COLUMNS], rows)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Count the places of programs, keep the counts, and make the tables."""
    parser = verified.parser(__doc__, "only programs without a count")
    options = parser.parse_args(arguments)
    programs, failures = read_programs(), 0
    if not options.table:
        import make_record
        import tensorflow as tf

        try:
            rows = make_record.chosen(programs, tf.__version__, options.only, False, None)
        except ValueError as error:
            parser.error(str(error))
        verified.use_stand_ins()
        for program in rows:
            if program.plain or options.missing and program.name in kept(programs).read():
                continue
            try:
                with verified.folder_of(program.name, options.keep) as work:
                    result = counted(program, observed(program, options.sources, work), work)
            except (RuntimeError, ValueError, subprocess.SubprocessError) as error:
                print(f"{program.name}: not counted. {make_record.failure(str(error))}", file=sys.stderr, flush=True)
                failures += 1
                continue
            print(f"{program.name}: {result.places}", file=sys.stderr, flush=True)
            kept(programs).add(result)
    for chinese, page in enumerate(_PAGES):
        verified.put(table(programs, bool(chinese)), _BEGIN, _END, [page])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
