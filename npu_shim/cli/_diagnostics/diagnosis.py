"""All facts about this machine, and the verdict: whether training can run here, and if not, why."""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict

import npu_shim
from npu_shim._host import host_device, host_env
from npu_shim._tensorflow.types import JsonObject
from npu_shim.cli._diagnostics.environment import environment_facts, rank_table_facts, visibility_contradictions
from npu_shim.cli._diagnostics.host import host_facts
from npu_shim.cli._diagnostics.node import root_info_facts
from npu_shim.cli._diagnostics.probe import probe
from npu_shim.cli._diagnostics.vendor import vendor_facts

SCHEMA = 1  # version of the dictionary, for readers of the JSON
Diagnosis = JsonObject  # ready for JSON


def diagnose() -> Diagnosis:
    """Examine this machine.

    Returns:
        A dictionary for JSON with a part for each module of this package, ``device``, ``problems`` (why training
        cannot run; empty if it can) and ``notes`` (findings that do not prevent training).
    """
    environ = host_env.process_environ()
    tensorflow, installed = dict(probe()), vendor_facts(environ)
    product = installed["product"]
    table, node = rank_table_facts(environ, product), root_info_facts(product)
    diagnosis: Diagnosis = {
        "schema": SCHEMA,
        "versions": versions_and_paths(),
        "tensorflow": tensorflow,
        "device": tensorflow.pop("device", None) or _device_without_tensorflow(),
        "vendor": installed,
        "environment": environment_facts(environ),
        "rank_table": table and asdict(table),
        "root_info": node and asdict(node),
        "visibility": visibility_contradictions(environ),
        "host": host_facts(),
    }
    diagnosis["problems"], diagnosis["notes"] = problem_texts(diagnosis), note_texts(diagnosis)
    return diagnosis


def problem_texts(diagnosis: Diagnosis) -> list[str]:
    """Return the reasons why training cannot run."""
    reasons: list[str] = []
    contradiction = diagnosis["environment"]["error"]
    unused_card = diagnosis["device"].get("unused_card")
    if contradiction:
        reasons.append(contradiction)
    elif diagnosis["tensorflow"]["error"] and unused_card:
        reasons.append(f"{unused_card}. To run on the CPU on purpose, export NPU_SHIM_FALLBACK=warn.")
    elif diagnosis["tensorflow"]["error"]:
        reasons.append(diagnosis["tensorflow"]["error"])
    table = diagnosis["rank_table"]
    if table and table["error"] and _reads_rank_table(diagnosis) and not contradiction:
        reasons.append(_table_error_text(table))
    return reasons + (_files_refused_by_hccl(diagnosis) if diagnosis["device"]["kind"] == "npu" else [])


def note_texts(diagnosis: Diagnosis) -> list[str]:
    """Return findings that do not prevent training but may surprise."""
    lines: list[str] = []
    table = diagnosis["rank_table"]
    if table and table["error"] and not _reads_rank_table(diagnosis):
        lines.append(_table_error_text(table) + " One process on the CPU does not need it.")
    if table:
        lines += [f"RANK_TABLE_FILE={table['path']!r}: {warning}" for warning in table["warnings"]]
    lines += diagnosis["visibility"]
    if diagnosis["device"]["kind"] != "npu":
        lines += _files_refused_by_hccl(diagnosis)
    tensorflow = diagnosis["tensorflow"]
    if tensorflow.get("estimator") is False:
        lines.append(
            f"TensorFlow {tensorflow['tensorflow']} has no tf.estimator: NPUEstimator and NPURunConfig raise an error. "
            "Use TensorFlow 2.15 or earlier if you need them."
        )
    if diagnosis["device"].get("unused_card") and not diagnosis["tensorflow"]["error"]:
        lines.append(f"{diagnosis['device']['unused_card']}.")
    return lines


def _files_refused_by_hccl(diagnosis: Diagnosis) -> list[str]:
    """Return the files that HCCL of this machine's NPUs refuses."""
    table, node = diagnosis["rank_table"], diagnosis["root_info"]
    lines = [f"RANK_TABLE_FILE={table['path']!r}: {table['refused']}."] if table and table["refused"] else []
    return lines + ([f"{node['path']}: {node['error']}"] if node and node["error"] else [])


def _device_without_tensorflow() -> dict[str, str | None]:
    """Return the device where TensorFlow could not be asked: without an import of the vendor's package."""
    try:
        host_env.read_environment()
    except ValueError as error:  # reported among the problems, with the environment
        return {"kind": None, "reason": str(error), "unused_card": None}
    device = host_device.detect_without_import()
    return {"kind": device.kind, "reason": device.reason, "unused_card": host_device.unused_card_text(device)}


def _reads_rank_table(diagnosis: Diagnosis) -> bool:
    return diagnosis["environment"]["rank_size"] != 1 or diagnosis["device"]["kind"] == "npu"


def _table_error_text(table: JsonObject) -> str:
    return f"RANK_TABLE_FILE={table['path']!r} cannot be used: {table['error']}."


def versions_and_paths() -> dict[str, str]:
    """Return versions and paths of npu_shim, Python and the system."""
    return {
        "npu_shim": npu_shim.__version__,
        "npu_shim_path": npu_shim.__path__[0],
        "python": platform.python_version(),
        "python_path": sys.executable,
        "system": platform.platform(),
        "machine": platform.machine(),
    }
