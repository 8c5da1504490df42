"""All facts about this machine, and the verdict: whether training can run here, and if not, why."""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict, dataclass
from typing import Sequence

import npu_shim
from npu_shim._host import host_device, host_env
from npu_shim._tensorflow.types import JsonObject
from npu_shim.cli._diagnostics.environment import (
    EnvironmentFacts,
    RankTableFacts,
    environment_facts,
    rank_table_facts,
    visibility_contradictions,
)
from npu_shim.cli._diagnostics.host import HostFacts, host_facts
from npu_shim.cli._diagnostics.node import RootInfoFacts, root_info_facts
from npu_shim.cli._diagnostics.probe import DeviceFacts, TensorFlowFacts, probe
from npu_shim.cli._diagnostics.vendor import VendorFacts, vendor_facts

SCHEMA = 1  # version of the report, for readers of the JSON


@dataclass(frozen=True)
class Versions:
    """Versions and paths of npu_shim, Python and the system."""

    npu_shim: str
    npu_shim_path: str
    python: str
    python_path: str
    system: str
    machine: str


@dataclass(frozen=True)
class Diagnosis:
    """The facts about this machine, a part for each module of this package."""

    versions: Versions
    tensorflow: TensorFlowFacts
    device: DeviceFacts
    vendor: VendorFacts
    environment: EnvironmentFacts
    rank_table: RankTableFacts | None
    root_info: RootInfoFacts | None
    visibility: Sequence[str]
    host: HostFacts

    def to_json(self) -> JsonObject:
        """Return the report."""
        typed = {"tensorflow": self.tensorflow.to_json(), "environment": self.environment.to_json()}
        return {"schema": SCHEMA, **asdict(self), **typed, "problems": problem_texts(self), "notes": note_texts(self)}


def diagnose() -> Diagnosis:
    """Examine this machine."""
    environ = host_env.process_environ()
    tensorflow, vendor = probe(), vendor_facts(environ)
    return Diagnosis(
        versions=versions_and_paths(),
        tensorflow=tensorflow,
        device=tensorflow.device or _device_without_tensorflow(),
        vendor=vendor,
        environment=environment_facts(environ),
        rank_table=rank_table_facts(environ, vendor.product),
        root_info=root_info_facts(vendor.product),
        visibility=visibility_contradictions(environ),
        host=host_facts(),
    )


def problem_texts(diagnosis: Diagnosis) -> list[str]:
    """Return the reasons why training cannot run."""
    reasons: list[str] = []
    contradiction, error = diagnosis.environment.error, diagnosis.tensorflow.error
    unused_card = diagnosis.device.unused_card
    if contradiction:
        reasons.append(contradiction)
    elif error and unused_card:
        reasons.append(f"{unused_card}. To run on the CPU on purpose, export NPU_SHIM_FALLBACK=warn.")
    elif error:
        reasons.append(error)
    table = diagnosis.rank_table
    if table and table.error and _reads_rank_table(diagnosis) and not contradiction:
        reasons.append(_table_error_text(table))
    return reasons + (_files_refused_by_hccl(diagnosis) if diagnosis.device.kind == "npu" else [])


def note_texts(diagnosis: Diagnosis) -> list[str]:
    """Return findings that do not prevent training but may surprise."""
    lines: list[str] = []
    table, tensorflow, device = diagnosis.rank_table, diagnosis.tensorflow, diagnosis.device
    if table and table.error and not _reads_rank_table(diagnosis):
        lines.append(_table_error_text(table) + " One process on the CPU does not need it.")
    if table:
        lines += [f"RANK_TABLE_FILE={table.path!r}: {warning}" for warning in table.warnings]
    lines += diagnosis.visibility
    if device.kind != "npu":
        lines += _files_refused_by_hccl(diagnosis)
    if tensorflow.estimator is False:
        lines.append(
            f"TensorFlow {tensorflow.tensorflow} has no tf.estimator: NPUEstimator and NPURunConfig raise an error. "
            "Use TensorFlow 2.15 or earlier if you need them."
        )
    if device.unused_card and not tensorflow.error:
        lines.append(f"{device.unused_card}.")
    return lines


def _files_refused_by_hccl(diagnosis: Diagnosis) -> list[str]:
    """Return the files that HCCL of this machine's NPUs refuses."""
    table, node = diagnosis.rank_table, diagnosis.root_info
    lines = [f"RANK_TABLE_FILE={table.path!r}: {table.refused}."] if table and table.refused else []
    return lines + ([f"{node.path}: {node.error}"] if node and node.error else [])


def _device_without_tensorflow() -> DeviceFacts:
    """Return the device where TensorFlow could not be asked: without an import of the vendor's package."""
    try:
        host_env.read_environment()
    except ValueError as error:  # reported among the problems, with the environment
        return DeviceFacts(None, str(error), None)
    device = host_device.detect_without_import()
    return DeviceFacts(device.kind, device.reason, host_device.unused_card_text(device))


def _reads_rank_table(diagnosis: Diagnosis) -> bool:
    return diagnosis.environment.rank_size != 1 or diagnosis.device.kind == "npu"


def _table_error_text(table: RankTableFacts) -> str:
    return f"RANK_TABLE_FILE={table.path!r} cannot be used: {table.error}."


def versions_and_paths() -> Versions:
    """Return versions and paths of npu_shim, Python and the system."""
    return Versions(
        npu_shim=npu_shim.__version__,
        npu_shim_path=npu_shim.__path__[0],
        python=platform.python_version(),
        python_path=sys.executable,
        system=platform.platform(),
        machine=platform.machine(),
    )
