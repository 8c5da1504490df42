"""Results of the vendor's migration tool with the programs of the record, record/vendor.tsv, and its conversions."""

from __future__ import annotations

import glob
import importlib
import os
import re
import subprocess
import sys
from collections import Counter
from typing import Any, Mapping, NamedTuple, Sequence

import record_results
import verified
from record_changes import KINDS, NEEDLESS, WRONG
from record_list import Program
from record_results import AGREE, DIFFER, NOT_REPRODUCIBLE

REPOSITORY, COMMIT = "hicann/tensorflow", "82957b9"
VERSIONS = "1.15", "2.6"  # of TensorFlow, for which there is a tool
PACKAGES = "pandas", "xlrd", "openpyxl", "pasta"  # that the tool imports
FAILS, NO_SYNTAX = "conversion fails", "result does not parse"
PORT, NATIVE_KERAS = OUTSIDE = "port already", "native Keras"  # that its guide excludes
_CUT = "Its evaluation loses the last partial batch."
_ROUNDING = "Rounding: all gradients are within the band of perturbed runs, and Adam turns elements near zero around."
CAUSES = {  # of differences, as read in the conversion or in the recordings
    "lambdaji/tf_repos/deep_ctr/Model_pipeline/DeepFM.py@1.15": _CUT,
    "omoindrot/tensorflow-triplet-loss/train.py@1.15": _CUT,
    "tensorflow/benchmarks/scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py@1.15": _ROUNDING,
}
CHANCE = {  # of differences that do not come from a conversion; both tools are not compared there
    "tkuanlun350/3DUnet-Tensorflow-Brats18/train.py@1.15": "The printed size of a queue depends on time.",
}
_UNTRACED, _TRACED = "The cause is not traced.", "differ by a cause"
_SHOWN = (  # verdicts, English, Chinese
    (AGREE, "compute the same", "计算结果相同"),
    (NOT_REPRODUCIBLE, "not reproducible without a conversion, either", "不转换也不可复现"),
    (_TRACED, "differ, with the cause", "不同，原因已知"),
    (DIFFER, "differ, cause not traced", "不同，原因未查明"),
)

_FOLDER = "convert_tf2npu"
_RENAMED_FOR_2 = {  # as its build does for TensorFlow 2
    "ast_impl.py": "ast_impl_v1.py",
    "v2/ast_impl_v2.py": "ast_impl.py",
    "v2/config_v2.py": "config.py",
    "v2/tf_func_def_v2.py": "tf_func_def_v2.py",
    "v2/mappings/ast_v2.json": "mappings/ast.json",
    "v2/TF2.6_api_support_list.xlsx": "TF2.6_api_support_list.xlsx",
}
_IMPORT = r"(?m)^\s*(?:import|from)\s+"
_STRATEGY = r"distribute\.(?:experimental\.)?\w*Strategy\(|contrib\.distribute|get_distribution_strategy\("
_COMPAT = r"import tensorflow\.compat\.v1|from tensorflow\.compat import v1|disable_(?:v2_behavior|eager_execution)\("


class VendorResult(NamedTuple):
    """The conversions of a program from its source alone, by both tools, a row of vendor.tsv.

    Attributes:
        name: of the program.
        commit: of the vendor's tool.
        options: of the vendor's tool.
        verdict: of ``npu-shim verify`` on the original and the vendor's conversion, or FAILS, NO_SYNTAX, or one of
            OUTSIDE; "" if it is not run.
        reason: the first value that departs, or the error.
        files: of the program.
        lines, our_lines: that are changed; None without a conversion.
        kinds, our_kinds: `record_changes.Changes.kinds` as text.
        date: of the measurement.
    """

    name: str
    commit: str
    options: str = ""
    verdict: str = ""
    reason: str = ""
    files: int | None = None
    lines: int | None = None
    kinds: str = ""
    our_lines: int | None = None
    our_kinds: str = ""
    date: str = ""

    @property
    def outcome(self) -> str:
        """The verdict with its reason, and with the cause of a difference."""
        cause = {**CAUSES, **CHANCE}.get(self.name, _UNTRACED) if self.verdict == DIFFER else ""
        return ": ".join(filter(None, (self.verdict, " ".join(filter(None, (self.reason, cause))))))

    @property
    def changes(self) -> str:
        """The numbers of wrong and needless changes, of both tools."""
        return "" if self.lines is None else f"{_wrong_and_needless(self.kinds)}; {_wrong_and_needless(self.our_kinds)}"


def kept(programs: Sequence[Program]) -> verified.Kept:
    """Return the results of a list."""
    return verified.Kept(os.path.join("record", "vendor.tsv"), VendorResult, [program.name for program in programs])


def text_of_kinds(kinds: Mapping[str, int]) -> str:
    """Return numbers by kind as text."""
    return "; ".join(f"{kind} {number}" for kind, number in kinds.items())


def kinds_of(text: str) -> Counter[str]:
    """Return the numbers by kind of `text_of_kinds`."""
    pairs = (pair.rsplit(" ", 1) for pair in text.split("; ") if pair)
    return Counter({kind: int(number) for kind, number in pairs})


def _wrong_and_needless(text: str) -> str:
    kinds = kinds_of(text)
    return ", ".join(str(sum(kinds[kind] for kind in names)) for names in (WRONG, NEEDLESS))


def totals(programs: Sequence[Program], chinese: bool) -> str:
    """Return what both tools made of the same programs, as a table."""
    rows = [row for row in kept(programs).read().values() if row.verdict not in OUTSIDE]
    results = record_results.kept(programs).read()
    ran = [(row, results[row.name]) for row in rows if row.verdict and row.name in results and row.name not in CHANCE]
    traced = [_TRACED if row.name in CAUSES and row.verdict == DIFFER else row.verdict for row, _ in ran]
    verdicts = [traced, [result.verdict for _, result in ran]]
    failures = FAILS, NO_SYNTAX, record_results.FAILS, record_results.NOT_RUN
    both = [row for row in rows if row.lines is not None]
    kinds = [
        sum((kinds_of(text) for text in texts), kinds_of("")) for texts in zip(*((r.kinds, r.our_kinds) for r in both))
    ]
    table = [
        ("programs converted", "转换的程序", f"{len(both)} / {len(rows)}", f"{len(rows)} / {len(rows)}"),
        ("train after it, of those whose original trains here", "其中原程序在此可训练的，转换后可训练")
        + tuple(f"{sum(v not in failures for v in column)} / {len(ran)}" for column in verdicts),
        *(
            (title, title_zh, *(f"{column.count(v)} / {len(ran)}" for column in verdicts))
            for v, title, title_zh in _SHOWN
        ),
        ("changed lines", "更改的行", sum(row.lines for row in both), sum(row.our_lines for row in both)),
    ]
    for title, title_zh, names in (
        ("wrong changes", "错误的更改", WRONG),
        ("needless changes", "多余的更改", NEEDLESS),
    ):
        sums = [sum(column[kind] for kind in names) for column in kinds]
        table.append((title, title_zh, *sums))
        shown = [kind for kind in names if any(column[kind] for column in kinds)]
        table += [(f"&emsp;{kind}", f"&emsp;{KINDS[kind]}", *(column[kind] for column in kinds)) for kind in shown]
    head = ("", "厂商工具", "npu_shim") if chinese else ("", "vendor's tool", "npu_shim")
    return verified.markdown(head, [(row[chinese], *row[2:]) for row in table])


def write_tool(tensorflow: str, sources: str, folder: str) -> str:
    """Write the vendor's tool for a version of TensorFlow into an empty folder. Return its folder.

    Its list of supported calls, of which its report is made, keeps one line. It would read all for each file.
    """
    pandas: Any = importlib.import_module("pandas")
    verified.checkout(REPOSITORY, COMMIT, _FOLDER, sources, folder)
    root = os.path.join(folder, _FOLDER)
    if tensorflow != "1.15":
        for name, new in _RENAMED_FOR_2.items():
            os.replace(os.path.join(root, name), os.path.join(root, new))
        os.remove(os.path.join(root, "tf1.15_api_support_list.xlsx"))
    (path,) = glob.glob(os.path.join(root, "*_api_support_list.xlsx"))
    sheets = pandas.read_excel(path, sheet_name=None, nrows=1)
    with pandas.ExcelWriter(path) as book:
        for sheet, rows in sheets.items():
            rows.to_excel(book, sheet_name=sheet, index=False)
    return root


def outside(text: str) -> str:
    """Return why the vendor's guide excludes the source of a program: PORT, NATIVE_KERAS or "".

    A port calls the vendor's packages before any conversion.
    """
    if re.search(_IMPORT + r"(?:npu_bridge|npu_device|hccl)\b", text):
        return PORT
    return NATIVE_KERAS if re.search(_IMPORT + r"keras\b", text) else ""


def options_for(text: str, tensorflow: str) -> list[str]:
    """Return the options that the vendor's documentation asks for, besides folders and the entry script.

    Args:
        text: the source of the program.
        tensorflow: its version.
    """
    options = []
    if re.search(_IMPORT + "horovod", text) and re.search(r"\bhvd\.init\(", text):
        options += ["-d", "horovod"]
    elif re.search(_STRATEGY, text):
        options += ["-d", "tf_strategy"]
    if tensorflow != "1.15" and re.search(_COMPAT, text):
        options.append("-c")
    return options


def convert(tool: str, source: str, target: str, script: str, options: Sequence[str], has_estimator: bool) -> str:
    """Convert a folder with the vendor's tool. Return the folder of the result in `target`.

    The tool asks if a call of ``train`` is that of an Estimator. All other questions are answered with "continue".
    It writes lists into the folder where it runs, which is that of `target`.

    Raises:
        RuntimeError: it ends with an error.
    """
    arguments = ["-i", source, "-o", target, "-r", target + "_report", "-m", os.path.join(source, script), *options]
    done = subprocess.run(
        [sys.executable, os.path.join(tool, "main.py"), *arguments],
        cwd=os.path.dirname(target),
        input=b"c\n%s\n" % (b"y" if has_estimator else b"n") * 1000,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=1800,
        check=False,
    )
    folders = os.listdir(target) if os.path.isdir(target) else []
    if done.returncode or not folders:
        raise RuntimeError(done.stdout.decode("utf-8", "replace"))
    return os.path.join(target, folders[0])
