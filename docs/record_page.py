"""Results of the record: what a row has, if it got worse, and the page docs/record.md in both languages."""

from __future__ import annotations

import os
from typing import Callable, Mapping, NamedTuple, Sequence

import verified
from record_list import DRAWN, Program

AGREE, DIFFER, NOT_REPRODUCIBLE, NOT_RUN = "agree", "differ", "not reproducible", "not run"
FAILS, ORIGINAL_FAILS = "conversion does not run", "original does not run"
_VERDICTS = [ORIGINAL_FAILS, FAILS, NOT_RUN, DIFFER, NOT_REPRODUCIBLE, AGREE]  # from the worst
_BEGIN, _END = "<!-- made by docs/make_record.py -->\n", "<!-- end of the record -->\n"
_READMES = [os.path.join(verified.ROOT, name) for name in ("README.md", "README.zh-CN.md")]
_PAGES = [os.path.join(verified.HERE, *names) for names in (("record.md",), ("zh", "record.md"))]
_COLUMNS = (
    ("program", "程序"),
    ("kind", "类型"),
    ("TensorFlow", "TensorFlow"),
    ("calls", "调用"),
    ("rewrites, by facts", "改写，其中依据事实"),
    ("left: before, reached, not reached", "需手工修改：此前、已执行、未执行"),
    ("verdict", "结论"),
    ("steps, names", "步数、名称"),
    ("compared", "比较对象"),
    ("ranks", "多个 rank"),
    ("export", "导出"),
    ("planted defect", "植入的缺陷"),
    ("seconds", "秒"),
    ("measured", "测量"),
)


class Result(NamedTuple):
    """The result of a program, a row of results.tsv.

    Attributes:
        name: of the program.
        ran: the commit that ran.
        calls: of TensorFlow in its files.
        rewrites, by_facts: all of them, and those that rest on observed runs.
        reached, unreached: places that are left to people, in code that the observed runs reached or did not reach.
        before: places that are left without facts.
        steps, names: that were compared.
        verdict: of verify; FAILS or ORIGINAL_FAILS where it compared nothing.
        reason: the first value that departs, or the error.
        defect: the verdict on the planted defect, "" without one.
        ranks: the verdict on several ranks, "" without them.
        export: of the trained model, "" without one.
        seconds: of all.
        date, version: of the measurement, the commit of npu_shim.
    """

    name: str
    ran: str
    calls: int | None = None
    rewrites: int | None = None
    by_facts: int | None = None
    reached: int | None = None
    unreached: int | None = None
    before: int | None = None
    steps: int | None = None
    names: int | None = None
    verdict: str = ""
    reason: str = ""
    defect: str = ""
    ranks: str = ""
    export: str = ""
    seconds: int | None = None
    date: str = ""
    version: str = ""

    @property
    def is_complete(self) -> bool:
        """True if calls and rewrites were counted, or nothing could run."""
        return self.calls is not None or self.verdict in (FAILS, ORIGINAL_FAILS)

    @property
    def line(self) -> str:
        """The result as text."""
        pairs = zip(self._fields[1:], self[1:])
        return f"{self.name}: " + ", ".join(f"{name} {value}" for name, value in pairs if value not in (None, ""))


def kept(programs: Sequence[Program]) -> verified.Kept:
    """Return the results of a list."""
    return verified.Kept(os.path.join("record", "results.tsv"), Result, [program.name for program in programs])


def worse(before: Result | None, now: Result) -> list[str]:
    """Return what got worse since an earlier result, a sentence each."""
    if before is None:
        return []
    sentences = []
    if _VERDICTS.index(now.verdict) < _VERDICTS.index(before.verdict):
        sentences.append(f"The verdict was {before.verdict!r} and is {now.verdict!r}: {now.reason}")
    if isinstance(before.reached, int) and (now.reached or 0) > before.reached:
        sentences.append(f"{before.reached} places in reached code were left, now {now.reached}.")
    for name, is_good in _GOOD.items():
        was, is_now = (getattr(result, name) for result in (before, now))
        if is_good(was) and is_now and not is_good(is_now):
            sentences.append(f"{name.capitalize()}: it was {was!r} and is {is_now!r}.")
    return sentences


_GOOD: Mapping[str, Callable[[str], bool]] = {
    "defect": lambda text: text.startswith("differ"),
    "ranks": lambda text: text.startswith(AGREE),
    "export": lambda text: text.startswith("equal"),
}


# --- the page ----------------------------------------------------------------------------------------------------
def _share(part: int, whole: int) -> str:
    return f"{part} / {whole} ({100 * part / whole:.1f} %)" if whole else "0 / 0"


def headline(programs: Sequence[Program], chinese: bool) -> str:
    """Return the counts, and those of the goals, as a table."""
    results = kept(programs).read()
    measured = [(program, results[program.name]) for program in programs if program.name in results]
    running = [(program, result) for program, result in measured if result.verdict != ORIGINAL_FAILS]
    tried = len(measured) + sum(bool(program.reason) for program in programs)
    verdicts = [result.verdict for _, result in running]
    explained = sum(r.verdict == AGREE or (r.verdict == NOT_REPRODUCIBLE and bool(p.cause)) for p, r in running)
    defects = [result.defect for _, result in measured if result.defect]
    ranks = [result.ranks for _, result in measured if result.ranks]
    exports = [result.export for _, result in measured if result.export]

    def total(name: str) -> int:
        return sum(getattr(result, name) or 0 for _, result in measured)

    rows = [
        (
            "programs, repositories",
            "程序、仓库",
            f"{len(programs)}, {len({p.repository for p in programs})}",
            "200, 120",
        ),
        ("of these drawn", "其中抽取的", str(sum(p.origin == DRAWN for p in programs)), ""),
        ("tried", "已尝试", _share(tried, len(programs)), ""),
        ("originals that run here", "原程序在此可运行", _share(len(running), tried), ""),
        (
            "conversions that run",
            "转换后可运行",
            _share(len(running) - sum(v in (FAILS, NOT_RUN) for v in verdicts), len(running)),
            "97 %",
        ),
        (
            "agree, or irreproducible with the cause",
            "一致，或不可复现且原因已知",
            _share(explained, len(running)),
            "95 %",
        ),
        ("compute something else", "计算结果不同", str(verdicts.count(DIFFER)), "0"),
        ("calls of TensorFlow", "TensorFlow 调用", str(total("calls")), ""),
        ("rewrites, by facts", "改写，其中依据事实", f"{total('rewrites')}, {total('by_facts')}", ""),
        (
            "places left: without facts, reached, not reached",
            "需手工修改：无事实时、已执行、未执行",
            f"{total('before')}, {total('reached')}, {total('unreached')}",
            "",
        ),
        ("planted defects found", "发现的植入缺陷", _share(sum(map(_GOOD["defect"], defects)), len(defects)), "100 %"),
        ("agree on several ranks", "多个 rank 上一致", _share(sum(map(_GOOD["ranks"], ranks)), len(ranks)), ""),
        ("exported and equal", "导出且相等", _share(sum(map(_GOOD["export"], exports)), len(exports)), ""),
    ]
    columns = ("", "数量", "目标") if chinese else ("", "count", "goal")
    return verified.markdown(columns, [(row[chinese], *row[2:]) for row in rows])


def sentence(programs: Sequence[Program], chinese: bool) -> str:
    """Return the sentence of the README about the record."""
    results = [row for row in kept(programs).read().values() if row.verdict != ORIGINAL_FAILS and row.is_complete]
    agree = sum(result.verdict == AGREE for result in results)
    before, reached = (sum(getattr(result, name) or 0 for result in results) for name in ("before", "reached"))
    if chinese:
        return (
            f"[记录](docs/zh/record.md)中有 {len(results)} 个在此可运行的公开程序：经 `npu-shim migrate` 迁移后，"
            f"{agree} 个的计算与原来相同；\n"
            f"需手工修改的位置，只看源码时有 {before} 处，运行一次后在已执行的代码中剩 {reached} 处。\n"
        )
    return (
        f"[The record](docs/record.md) has {len(results)} public programs that run here: after `npu-shim migrate`, "
        f"{agree} compute the same.\n"
        f"Source alone leaves {before} places in them to people; one run leaves {reached} in code that ran.\n"
    )


def table(programs: Sequence[Program], chinese: bool) -> str:
    """Return a row for each program."""
    results = kept(programs).read()
    rows = []
    for program in programs:
        result = results.get(program.name, Result(program.name, program.commit))
        link = f"[{program.repository}]({program._replace(commit=result.ran).link}) `{program.path}`"
        verdict = ORIGINAL_FAILS if program.reason else result.verdict
        reason = program.reason or " ".join(filter(None, (result.reason, program.cause)))
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
                "plain form and port" if program.plain else "script and conversion",
                result.ranks,
                result.export,
                defect,
                _cell(result.seconds),
                " ".join(filter(None, (result.date, result.version))),
            )
        )
    return verified.markdown([names[chinese] for names in _COLUMNS], rows)


def _cell(*numbers: int | None) -> str:
    return "" if numbers[0] is None else ", ".join(map(str, numbers))


def write(programs: Sequence[Program]) -> None:
    """Put the results in order, and write the counts and the table into the page and its Chinese form."""
    kept(programs).add()
    for chinese, page in enumerate(_PAGES):
        verified.put(sentence(programs, bool(chinese)), _BEGIN, _END, [_READMES[chinese]])
        verified.put(f"{headline(programs, bool(chinese))}\n{table(programs, bool(chinese))}", _BEGIN, _END, [page])
