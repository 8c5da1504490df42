"""All of it together, and the verdict: whether training can run here, and if not, why."""

from __future__ import annotations

from typing import Any

from npu_shim import _device
from npu_shim.diagnostics.host import host
from npu_shim.diagnostics.probe import probe
from npu_shim.diagnostics.variables import rank_table, variables
from npu_shim.diagnostics.vendor import vendor
from npu_shim.diagnostics.versions import versions

SCHEMA = 1  # of the dictionary, for who reads the JSON


def examine() -> dict[str, Any]:
    """Looks at this machine.

    Returns:
        A dictionary for JSON: a part for each module of this package, ``device``, ``problems`` (why training
        cannot run; empty where it can), ``notes`` (what is worth knowing all the same).
    """
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "versions": versions(),
        "tensorflow": probe(),
        "device": _found_device(),
        "vendor": vendor(),
        "environment": variables(),
        "rank_table": rank_table(),
        "host": host(),
    }
    found["problems"], found["notes"] = problems(found), notes(found)
    return found


def problems(found: dict[str, Any]) -> list[str]:
    """Why training cannot run on what was found."""
    made: list[str] = []
    contradiction = found["environment"]["error"]
    if contradiction:
        made.append(contradiction)
    elif found["tensorflow"]["error"]:
        made.append(found["tensorflow"]["error"])
    table = found["rank_table"]
    if table and table["error"] and _reads_rank_table(found) and not contradiction:
        made.append(_table_text(table))
    return made


def notes(found: dict[str, Any]) -> list[str]:
    """What does not stop training here, but may surprise."""
    made: list[str] = []
    table = found["rank_table"]
    if table and table["error"] and not _reads_rank_table(found):
        made.append(_table_text(table) + " One process on the CPU does not need it.")
    if table:
        made += [f"RANK_TABLE_FILE={table['path']!r}: {warning}" for warning in table["warnings"]]
    tensorflow = found["tensorflow"]
    if tensorflow.get("estimator") is False:
        made.append(
            f"TensorFlow {tensorflow['tensorflow']} has no tf.estimator: NPUEstimator and NPURunConfig end in "
            "an error. The last TensorFlow that has it is 2.15."
        )
    if found["device"]["kind"] == "cpu" and found["vendor"]["cards"]:
        made.append(
            f"There are cards ({', '.join(found['vendor']['cards'])}) that are not used: {found['device']['reason']}."
        )
    return made


def _found_device() -> dict[str, Any]:
    try:
        device = _device.device()
    except ValueError as error:  # said among the problems, with the environment
        return {"kind": None, "reason": str(error)}
    return {"kind": device.kind, "reason": device.reason}


def _reads_rank_table(found: dict[str, Any]) -> bool:
    return found["environment"]["rank_size"] != 1 or found["device"]["kind"] == "npu"


def _table_text(table: dict[str, Any]) -> str:
    return f"RANK_TABLE_FILE={table['path']!r} cannot be used: {table['error']}."
