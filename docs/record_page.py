"""The page of the record, docs/record.md in both languages, and the sentence of the README about it."""

from __future__ import annotations

import os
from typing import NamedTuple, Sequence

import record_vendor
import verified
from record_list import DRAWN, SEED, Program
from record_results import AGREE, DIFFER, FAILS, GOOD, NOT_REPRODUCIBLE, NOT_RUN, VERDICTS, Result, kept

NOT_HERE = "not run here"  # a program of the list with a reason
_BEGIN, _END = "<!-- made by docs/make_record.py -->\n", "<!-- end of the record -->\n"
_LIST = os.path.join(verified.HERE, "record")
_READMES = [os.path.join(verified.ROOT, name) for name in ("README.md", "README.zh-CN.md")]
_PAGES = [os.path.join(verified.HERE, *names) for names in (("record.md",), ("zh", "record.md"))]
_COLUMNS = (
    ("program", "程序"),
    ("kind", "类型"),
    ("TensorFlow", "TensorFlow"),
    ("calls", "调用"),
    ("rewrites, by facts", "改写，其中依据观察结果"),
    ("left: before, reached, not reached", "需手工修改：此前、已执行、未执行"),
    ("verdict", "结论"),
    ("steps, names", "步数、名称"),
    ("compared", "比较对象"),
    ("ranks", "多个 rank"),
    ("export", "导出"),
    ("planted defect", "植入的缺陷"),
    ("seconds", "秒"),
    ("measured", "测量"),
    ("vendor's tool", "厂商工具"),
    ("wrong, needless changes: vendor's tool; npu_shim", "错误、多余的更改：厂商工具；npu_shim"),
)


class _Entry(NamedTuple):
    """A program of a repository, at one path, with its worst result.

    Attributes:
        program: of the list, with the version of TensorFlow in which it did worst.
        result: None if it is not measured.
    """

    program: Program
    result: Result | None

    @property
    def is_running(self) -> bool:
        """True if the original trains here."""
        return self.result is not None and self.result.original_trains

    @property
    def is_migrated(self) -> bool:
        """True if ``npu-shim migrate`` ran, not ``npu-shim verify`` alone."""
        result = self.result
        return self.is_running and result is not None and (result.calls is not None or result.verdict == FAILS)

    def total(self, name: str) -> int:
        """Return a count of the result."""
        return getattr(self.result, name) or 0


def _entries(programs: Sequence[Program]) -> list[_Entry]:
    """Return an entry for each repository and path, which the list may have with several versions of TensorFlow."""
    results = kept(programs).read()
    by_path: dict[tuple[str, str], list[_Entry]] = {}
    for program in programs:
        entry = _Entry(program, results.get(program.name))
        by_path.setdefault((program.repository, program.path), []).append(entry)
    return [min(entries, key=_badness) for entries in by_path.values()]


def _badness(entry: _Entry) -> int:
    return len(VERDICTS) if entry.result is None else VERDICTS.index(entry.result.verdict)


def _share(part: int, whole: int) -> str:
    return f"{part} / {whole} ({100 * part / whole:.1f} %)" if whole else "0 / 0"


def _counts(entries: Sequence[_Entry], chinese: bool) -> list[str]:
    """Return the counts of some entries, in the order of `_HEADLINE`."""
    running = [entry for entry in entries if entry.is_running]
    migrated = [entry for entry in running if entry.is_migrated]
    counted = [entry for entry in migrated if entry.result and entry.result.calls is not None]
    reasons = sum(bool(entry.program.reason) for entry in entries)
    verdicts = [entry.result.verdict for entry in running if entry.result]
    causes = sum(v == NOT_REPRODUCIBLE and bool(e.program.cause) for v, e in zip(verdicts, running))

    def totals(*names: str) -> str:
        numbers = ", ".join(str(sum(entry.total(name) for entry in counted)) for name in names)
        return f"{numbers}（{len(counted)} 个程序）" if chinese else f"{numbers} in {len(counted)} programs"

    def declared(name: str) -> str:
        asked = [entry for entry in running if getattr(entry.program, name)]
        return _share(sum(GOOD[name](getattr(entry.result, name)) for entry in asked), len(asked))

    return [
        f"{len(entries)}, {len({entry.program.repository for entry in entries})}",
        _share(len(migrated), len(entries)),
        _share(len(running) - len(migrated), len(entries)),
        _share(sum(bool(entry.result) and not entry.is_running for entry in entries), len(entries)),
        _share(reasons, len(entries)),
        _share(sum(not entry.result and not entry.program.reason for entry in entries), len(entries)),
        _share(len(running) - sum(v in (FAILS, NOT_RUN) for v in verdicts), len(running)),
        _share(verdicts.count(AGREE) + causes, len(running)),
        str(verdicts.count(DIFFER)),
        totals("calls"),
        totals("rewrites", "by_facts"),
        totals("before", "reached", "unreached"),
        *(declared(name) for name in GOOD),
        str(sum(bool(entry.program.not_on_ranks) for entry in running)),
    ]


_HEADLINE = (  # English, Chinese, goal
    ("programs, repositories", "程序、仓库", "200, 120"),
    ("run here with `npu-shim migrate`", "在此用 `npu-shim migrate` 运行", ""),
    ("run here with `npu-shim verify` alone", "在此只用 `npu-shim verify` 运行", ""),
    ("original fails here, or trains nothing", "原程序在此失败或不训练", ""),
    ("not run here, with the reason", "未在此运行，有原因", ""),
    ("not measured yet", "尚未测量", ""),
    ("conversions that run", "转换后可运行", "97 %"),
    ("agree, or irreproducible with the cause", "一致，或不可复现且原因已知", "95 %"),
    ("compute something else", "计算结果不同", "0"),
    ("calls of TensorFlow", "TensorFlow 调用", ""),
    ("rewrites, by facts", "改写，其中依据观察结果", ""),
    ("places left: without facts, reached, not reached", "需手工修改：无观察结果时、已执行、未执行", ""),
    ("planted defects found", "发现的植入缺陷", "100 %"),
    ("agree on several ranks", "多个 rank 上一致", ""),
    ("exported and equal", "导出且相等", ""),
    ("not comparable on several ranks, with the reason", "多个 rank 上不可比，有原因", ""),
)


def headline(programs: Sequence[Program], chinese: bool) -> str:
    """Return the counts, and those of the goals, as a table."""
    entries = _entries(programs)
    drawn = [entry for entry in entries if entry.program.origin == DRAWN]
    earlier = [entry for entry in entries if entry.program.origin != DRAWN]
    counts = zip(*(_counts(part, chinese) for part in (drawn, earlier, entries)))
    columns = (
        ("", "抽取的", "此前选择的", "总数", "目标") if chinese else ("", "drawn", "chosen before", "total", "goal")
    )
    return verified.markdown(columns, [(row[chinese], *cells, row[2]) for row, cells in zip(_HEADLINE, counts)])


def introduction(programs: Sequence[Program], chinese: bool) -> str:
    """Return the sentences that say what ran, and how large the lists are from which programs were drawn."""
    entries = _entries(programs)
    migrated = sum(entry.is_migrated for entry in entries)
    verified_only = sum(entry.is_running for entry in entries) - migrated
    frame, drawn, zoo, zoo_drawn = map(_lines, ("frame.txt", "draw.tsv", "frame_zoo.txt", "draw_zoo.tsv"))
    drawn, zoo_drawn = drawn - 1, zoo_drawn - 1  # a line of names
    if chinese:
        return (
            f"列表有 {len(entries)} 个程序：{migrated} 个在此用 `npu-shim migrate` 运行过，{verified_only} 个只用 "
            f"`npu-shim verify` 运行过，其余未在此训练。\n"
            f"frame.txt 有 {frame:,} 个仓库，抽取前 {drawn} 个；frame_zoo.txt 有 {zoo:,} 个程序，"
            f"抽取前 {zoo_drawn} 个；次序由 `random.Random({SEED}).shuffle` 给出。\n"
        )
    return (
        f"The list has {len(entries)} programs. {migrated} ran here with `npu-shim migrate`, {verified_only} with "
        "`npu-shim verify` alone; the others did not train here.\n"
        f"frame.txt has {frame:,} repositories, of which the first {drawn} are drawn; frame_zoo.txt has {zoo:,} "
        f"programs, of which the first {zoo_drawn} are drawn. `random.Random({SEED}).shuffle` gives the order.\n"
    )


def _lines(name: str) -> int:
    with open(os.path.join(_LIST, name), encoding="utf-8") as stream:
        return sum(1 for _ in stream)


def sentence(programs: Sequence[Program], chinese: bool) -> str:
    """Return the sentence of the README about the record."""
    migrated = [entry for entry in _entries(programs) if entry.is_migrated]
    agree = sum(entry.result is not None and entry.result.verdict == AGREE for entry in migrated)
    before, reached, unreached = (sum(e.total(name) for e in migrated) for name in ("before", "reached", "unreached"))
    if chinese:
        return (
            f"[记录](docs/zh/record.md)中有 {len(migrated)} 个公开程序各用一次运行迁移：{agree} 个的计算与原来相同。\n"
            f"只看源码时，有 {before} 处需手工修改；运行一次后，已执行的代码中剩 {reached} 处，"
            f"未执行的代码中剩 {unreached} 处。\n"
        )
    return (
        f"[The record](docs/record.md) has {len(migrated)} public programs that were migrated with one run each: "
        f"{agree} compute the same.\n"
        f"Source alone leaves {before} places in them to people; with one run, {reached} remain in code that ran and "
        f"{unreached} in code that did not run.\n"
    )


def page(programs: Sequence[Program], chinese: bool) -> str:
    """Return what the page has from the results."""
    parts = introduction, headline, record_vendor.totals, table
    return "\n".join(part(programs, chinese) for part in parts)


def table(programs: Sequence[Program], chinese: bool) -> str:
    """Return a row for each program."""
    results, of_vendor = kept(programs).read(), record_vendor.kept(programs).read()
    rows = []
    for program in programs:
        vendor = of_vendor.get(program.name, record_vendor.VendorResult(program.name, ""))
        result = results.get(program.name, Result(program.name, program.commit))
        link = f"[{program.repository}]({program._replace(commit=result.ran).link}) `{program.path}`"
        verdict = NOT_HERE if program.reason else result.verdict
        reason = program.reason or " ".join(
            filter(None, (result.reason, program.cause, result.was and f"({result.was})"))
        )
        defect = f"{program.defect.kind}: {result.defect}" if program.defect else ""
        rows.append(
            (
                link,
                program.kind,
                program.tensorflow,
                _cell(result.calls),
                _cell(result.rewrites, result.by_facts),
                _cell(result.before, result.reached, result.unreached),
                f"{verdict}: {reason}" if reason else verdict,
                _cell(result.steps, result.names),
                _compared(program, result),
                program.not_on_ranks and f"not comparable: {program.not_on_ranks}" or result.ranks,
                result.export,
                defect,
                _cell(result.seconds),
                " ".join(filter(None, (result.date, result.version))),
                vendor.outcome,
                vendor.changes,
            )
        )
    return verified.markdown([names[chinese] for names in _COLUMNS], rows)


def _compared(program: Program, result: Result) -> str:
    if not program.plain:
        return "script and conversion"
    return "plain form and port" if result.calls is None else "plain form, port and conversion"


def _cell(*numbers: int | None) -> str:
    return "" if numbers[0] is None else ", ".join(map(str, numbers))


def write(programs: Sequence[Program]) -> None:
    """Put the results in order, and write the counts and the table into the page and its Chinese form."""
    kept(programs).add()
    for chinese, path in enumerate(_PAGES):
        verified.put(sentence(programs, bool(chinese)), _BEGIN, _END, [_READMES[chinese]])
        verified.put(page(programs, bool(chinese)), _BEGIN, _END, [path])
