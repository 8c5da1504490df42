"""Environment variables that matter for training, contradictions between them, and the rank table."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Mapping, Sequence

from npu_shim._host import host_env, mpirun
from npu_shim._tensorflow.types import JsonObject
from npu_shim.cli._diagnostics.node import visibility_problems
from npu_shim.distributed.ranktable.model import RankTableError
from npu_shim.distributed.ranktable.products import BY_VERSION, refusal_problem
from npu_shim.distributed.ranktable.reader import read_table, read_table_text, read_with_problems
from npu_shim.distributed.world import world, world_size

# Variables of the vendor's runtime, of TensorFlow on the CPU, and of the search paths for both
_PREFIXES = tuple(
    (
        "ASCEND_ HCCL_ NPU_ CM_ GE_ DUMP_ PROFILING_ TE_ ENABLE_ OPTION_EXEC_ TF_XLA_ TF_CPU_ TF_CPP_ TF_NUM_ "
        "TF_ENABLE_ OMP_ KMP_"
    ).split()
)
_NAMES = (
    *(
        "AOE_MODE FUSION_TENSOR_SIZE PRINT_MODEL POD_NAME SOC_VERSION RESTORE_FROM STEP_NOW TOTAL_STEP LOSS_NOW "
        "TARGET_LOSS LOCAL_CHECKPOINT_DIR SLOG_PRINT_TO_STDOUT DEVICE_INDEX RANK_INDEX SERVER_ID CUDA_VISIBLE_DEVICES "
        "TF_USE_LEGACY_KERAS TF_DETERMINISTIC_OPS PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION PYTHONPATH LD_LIBRARY_PATH "
        "LD_PRELOAD"
    ).split(),
    *mpirun.VARIABLES,
)
_SECRET = re.compile(r"TOKEN|SECRET|PASS|CREDENTIAL|(^|_)KEY(_|$)|AUTH")
_LOGIN = re.compile(r"(://)[^/@\s]+@")
HIDDEN = "(set, not shown)"


@dataclass(frozen=True)
class EnvironmentFacts:
    """The relevant variables.

    Attributes:
        values: by name, without secrets.
        not_set: other names that npu_shim reads.
        rank_size: None if it is unknown.
        error: the first contradiction, None if there is none.
    """

    values: Mapping[str, str]
    not_set: Sequence[str]
    rank_size: int | None
    error: str | None

    def to_json(self) -> JsonObject:
        """Return the part of the report."""
        return {"set": self.values, "not_set": self.not_set, "rank_size": self.rank_size, "error": self.error}


@dataclass
class RankTableFacts:
    """Facts about the file that RANK_TABLE_FILE names.

    Attributes:
        path: of the file.
        error: why it cannot be used, None if it can.
        ranks, servers, version: None if unknown.
        refused: why HCCL of the product refuses the version, else None.
        warnings: entries that an NPU may refuse.
    """

    path: str
    error: str | None = None
    ranks: int | None = None
    servers: int | None = None
    version: str | None = None
    refused: str | None = None
    warnings: list[str] = field(default_factory=list)


def environment_facts(environ: Mapping[str, str]) -> EnvironmentFacts:
    """Return the relevant variables and contradictions between them.

    Args:
        environ: the variables of the process.
    """
    values = {
        name: _hide_secret(name, value)
        for name, value in sorted(environ.items())
        if name in host_env.VARIABLES or name in _NAMES or name.startswith(_PREFIXES)
    }
    not_set = [name for name in host_env.VARIABLES if not environ.get(name)]
    rank_size = error = None
    try:
        rank_size = world_size(environ)
        if host_env.read_environment(environ).cm_chief_ip is None:  # otherwise the NPUs number the ranks
            world(environ)
    except ValueError as problem:
        error = _hide_login(str(problem))
    return EnvironmentFacts(values, not_set, rank_size, error)


def rank_table_facts(environ: Mapping[str, str], product: str | None = None) -> RankTableFacts | None:
    """Return facts about the file that RANK_TABLE_FILE names, None if it is not set.

    Args:
        environ: the variables of the process.
        product: of the NPUs of this machine; None if it is unknown or there are none.
    """
    path = environ.get("RANK_TABLE_FILE", "").strip()
    if not path:
        return None
    facts = RankTableFacts(path)
    try:
        table = read_table(path)
        facts.ranks, facts.servers = table.size, len({server.server_id for server in table.servers})
        facts.version = table.version
        refusal = None if product is None else refusal_problem(table, product)
        facts.refused = None if refusal is None else str(refusal)
        problems = read_with_problems(read_table_text(path), product or BY_VERSION)[1]
        facts.warnings = [str(problem) for problem in problems if problem != refusal]
    except OSError as problem:
        facts.error = problem.strerror or str(problem)
    except RankTableError as problem:
        facts.error = problem.summary
    return facts


def visibility_contradictions(environ: Mapping[str, str]) -> list[str]:
    """Return contradictions of ASCEND_RT_VISIBLE_DEVICES with ASCEND_DEVICE_ID and the rank table.

    Args:
        environ: the variables of the process.
    """
    path = environ.get("RANK_TABLE_FILE", "").strip()
    table = None
    if path:
        try:
            table = read_table(path)
        except (OSError, RankTableError):
            table = None  # rank_table() reports it
    return visibility_problems(environ, table)


def _hide_secret(name: str, value: str) -> str:
    return HIDDEN if _SECRET.search(name) and name != "TF_CONFIG" else _hide_login(value)


def _hide_login(text: str) -> str:
    return _LOGIN.sub(r"\1***@", text)
