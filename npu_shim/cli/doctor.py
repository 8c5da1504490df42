"""Report this machine's setup and whether training can run here.

The page lists versions, the NPU and the vendor's packages, environment
variables, processors and memory. The command also trains one step. Paste the
page into an issue when you ask for help. ``--card-check`` checks an NPU step by step
and explains each failure. ``--log`` reads the logs of a training that failed, and names
the first cause.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import sys
from typing import Iterator

from npu_shim.cli import LOOK_UP, parser_of, print_output
from npu_shim.cli._diagnostics import log_report
from npu_shim.cli._diagnostics.card_check import Outcome, check_card, outcome_lines
from npu_shim.cli._diagnostics.diagnosis import Diagnosis, diagnose, note_texts, problem_texts
from npu_shim.cli._diagnostics.host import HostFacts
from npu_shim.cli._diagnostics.vendor import Component, Package
from npu_shim.distributed.ranktable.model import count_text
from npu_shim.troubles.logs import explain_logs

GROUP = LOOK_UP
EXAMPLE = "npu-shim doctor"

_WIDTH = 16
_GIVE_LOGS = "Give logs, or folders of logs such as ~/ascend/log."


def main(arguments: list[str]) -> int:
    """Print the page.

    Args:
        arguments: ``--json``, ``--card-check``, ``--log`` with paths, or nothing.
    Returns:
        0 if training can run on this machine, all checks that ran passed, or the logs show no known error, else 1; 2 if
        one may be in a log that cannot be read.
    """
    parser = _parser()
    args = parser.parse_args(arguments)
    if args.log:
        missing = [path for path in args.log if not os.access(path, os.R_OK)]
        if missing:
            parser.error(f"not found or not readable: {', '.join(missing)}. {_GIVE_LOGS}")
        progress = log_report.ReadProgress(sys.stderr)
        try:
            explanation = explain_logs(args.log, progress.count_bytes)
        finally:
            progress.remove_line()
        if not explanation.paths:
            parser.error(f"no file with the name of a log in {', '.join(args.log)}. {_GIVE_LOGS}")
        report = log_report.to_json(explanation) if args.json else log_report.to_text(explanation)
        return print_output(report, 1 if explanation.sightings else 2 if explanation.problems else 0)
    if args.card_check:
        return _check_card(args.json)
    diagnosis = diagnose()
    code = 1 if problem_texts(diagnosis) else 0
    return print_output(json.dumps(diagnosis.to_json(), indent=2) if args.json else page_text(diagnosis), code)


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "doctor",
        "Reports versions, devices, environment variables and memory, and trains one step. "
        "The exit code is 0 if training can run here, else 1. The last lines give the reasons.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--card-check",
        action="store_true",
        help="check the NPU instead, step by step: driver, access, toolkit, package, training, several NPUs; each "
        "failure comes with its cause and fix (docs/on_a_card.md)",
    )
    choice.add_argument(
        "--log",
        nargs="+",
        metavar="FILE",
        help="read logs of any length instead, also compressed ones (.gz) and folders such as ~/ascend/log, and say "
        "the first cause of the failure (docs/troubles.md); exit code 1 if they show a known error, else 0",
    )
    return parser


def _check_card(as_json: bool) -> int:
    """Run the checks of the NPU, and print each when it is done."""

    def report(outcome: Outcome) -> None:
        if not as_json:
            print("\n".join(outcome_lines(outcome)), flush=True)

    outcomes = check_card(report)
    code = 1 if any(outcome.state == "failed" for outcome in outcomes) else 0
    if not as_json:
        counts = collections.Counter(outcome.state for outcome in outcomes)
        return print_output(
            ", ".join(f"{counts[state]} {state}" for state in ("passed", "failed", "not run")) + ".", code
        )
    return print_output(json.dumps([outcome.to_json() for outcome in outcomes], indent=2), code)


def page_text(diagnosis: Diagnosis) -> str:
    """Return the diagnosis as text."""
    lines, problems = [], problem_texts(diagnosis)
    for title, part in (
        ("versions", _version_rows(diagnosis)),
        ("device", _device_rows(diagnosis)),
        ("environment", _environment_rows(diagnosis)),
        ("host", _host_rows(diagnosis.host)),
    ):
        lines += [title] + [f"  {name.ljust(_WIDTH)}  {text}" for name, text in part] + [""]
    lines += [f"note: {note}" for note in note_texts(diagnosis)]
    if not problems:
        lines.append("Training can run here.")
    else:
        lines += ["Training cannot run here:"] + [f"  {problem}" for problem in problems]
    return "\n".join(lines)


def _version_rows(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    versions, tensorflow = diagnosis.versions, diagnosis.tensorflow
    yield "npu_shim", f"{versions.npu_shim} ({versions.npu_shim_path})"
    yield "Python", f"{versions.python} ({versions.python_path})"
    yield "system", f"{versions.system}, {versions.machine}"
    if tensorflow.tensorflow is None:
        yield "TensorFlow", tensorflow.error or "unknown"
        return
    yield (
        "TensorFlow",
        f"{tensorflow.tensorflow} ({tensorflow.tensorflow_path}), imported in {tensorflow.import_seconds:g} s",
    )
    features = f"Estimator: {_yes_or_no(tensorflow.estimator)}; Keras sessions: {_yes_or_no(tensorflow.keras_sessions)}"
    yield "", f"{features}; numpy {tensorflow.numpy}, protobuf {tensorflow.protobuf}"
    if tensorflow.trained_on:
        yield "one step", f"trained on the {tensorflow.trained_on} in {tensorflow.step_seconds:g} s"


def _device_rows(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    device, vendor = diagnosis.device, diagnosis.vendor
    yield "here", f"{device.kind or 'unknown'}: {device.reason}"
    product = f" ({vendor.product})" if vendor.product else ""
    yield "cards", (", ".join(vendor.cards) or "none") + product
    yield "driver", _component_text(vendor.driver)
    yield "toolkit", _component_text(vendor.toolkit)
    for package in vendor.packages:
        yield package.name, _component_text(package if package.path else None)


def _component_text(installed: Package | Component | None) -> str:
    return f"{installed.version or 'unknown version'} ({installed.path})" if installed else "missing"


def _environment_rows(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    environment, table, node = diagnosis.environment, diagnosis.rank_table, diagnosis.root_info
    for name, value in environment.values.items():
        yield name, repr(value)
    if table:
        version = f", version {table.version}" if table.version else ""
        ranks = (
            table.error
            or f"{count_text(table.ranks or 0, 'rank')} on {count_text(table.servers or 0, 'server')}{version}"
        )
        yield "rank table", f"{table.path}: {ranks}"
    if node:
        yield "root info", f"{node.path}: {count_text(len(node.devices), 'device')}, version {node.version}"
    yield "not set", ", ".join(environment.not_set) or "no variable that npu_shim reads"
    if environment.error:
        yield "contradiction", environment.error


def _host_rows(host: HostFacts) -> Iterator[tuple[str, str]]:
    yield "CPUs", f"{host.cpus}, usable {host.cpus_usable}"
    limit = f", limited to {_size_text(host.memory_limit_bytes)}" if host.memory_limit_bytes else ""
    yield "memory", f"{_size_text(host.memory_bytes)}, available {_size_text(host.memory_available_bytes)}{limit}"
    yield "shared memory", f"free {_size_text(host.shared_memory_free_bytes)}"


def _size_text(number: int | None) -> str:
    return "unknown" if number is None else f"{number / 1e9:.1f} GB"


def _yes_or_no(value: bool | None) -> str:
    return "yes" if value else "no"
