"""The rules of each product for a rank table: its version, and the devices of a server."""

from __future__ import annotations

from collections import defaultdict
from typing import Iterator

from npu_shim._host.host_device import ASCEND_A5, ATLAS_910, ATLAS_A2, ATLAS_A3
from npu_shim.distributed.ranktable import model
from npu_shim.distributed.ranktable.model import (
    RANK_LIST,
    RANKS,
    SERVERS,
    Problem,
    RankTable,
    count_text,
    warning_problem,
)

PRODUCTS = (ATLAS_910, ATLAS_A2, ATLAS_A3, ASCEND_A5)
BY_VERSION = "version"  # instead of a product: the one that the version of the table is for
# The versions of each product: an A3 has super-pods (1.2) or servers alone (1.0)
_VERSIONS = {ATLAS_910: (SERVERS,), ATLAS_A2: (SERVERS,), ATLAS_A3: (model.SUPER_PODS, SERVERS), ASCEND_A5: (RANKS,)}
_ALLOWED_COUNTS = (1, 2, 4, 8)
_RING_SIZE = 4  # devices 0-3 and 4-7 of a 910 server are two rings


def product_of(table: RankTable) -> str:
    """Return the product for which the version of a table is."""
    return {RANKS: ASCEND_A5, model.SUPER_PODS: ATLAS_A3}.get(_structure_version(table) or "", ATLAS_910)


def dialect_of(product: str | None) -> str:
    """Return the current dialect of a product; None stands for any but the A5."""
    return RANK_LIST if product == ASCEND_A5 else model.SERVER_LIST


def refusal_problem(table: RankTable, product: str) -> Problem | None:
    """Return the problem if HCCL of a product refuses the version of a table, else None.

    HCCL of the Ascend 950 reads version 2.0 only, and that of the others does not read it.
    """
    if (product == ASCEND_A5) == (_structure_version(table) == RANKS):
        return None
    return next(_version_problems(table, product))


def product_problems(table: RankTable, product: str) -> Iterator[Problem]:
    """Yield the problems of a table on a product.

    Args:
        table: any table.
        product: one of PRODUCTS, or BY_VERSION.
    """
    product = product_of(table) if product == BY_VERSION else product
    yield from _version_problems(table, product)
    yield from _topology_problems(table, product)


def _structure_version(table: RankTable) -> str | None:
    """Return the version of the table's structure; None for the older forms, which have none."""
    return RANKS if table.dialect == RANK_LIST else table.version if table.dialect == model.SERVER_LIST else None


def _version_problems(table: RankTable, product: str) -> Iterator[Problem]:
    version, wanted = _structure_version(table), _VERSIONS[product]
    if version in wanted or (version is None and product != ASCEND_A5):
        return
    path, has = ("$.version", f"is {table.version!r}") if table.version is not None else ("$", "has no version")
    text = f"{has}, but {product} uses {' or '.join(map(repr, wanted))}"
    if product == ASCEND_A5:
        advice = "HCCL stops with EI0014. Run npu-shim ranktable make --product A5"
    else:
        stops = "HCCL stops with EI0014. " if version == RANKS else ""
        advice = f"{stops}Run npu-shim ranktable convert --to {SERVERS}"
    yield warning_problem(path, text, advice)


def _topology_problems(table: RankTable, product: str) -> Iterator[Problem]:
    """Check that the devices of each server can train together."""
    devices: dict[str, list[int]] = defaultdict(list)
    paths: dict[str, str] = {}
    for at, server in enumerate(table.servers):
        devices[server.server_id] += [device.device_id for device in server.devices]
        paths.setdefault(server.server_id, _devices_path(table, at))
    counts = {server_id: len(ids) for server_id, ids in devices.items()}
    for server_id, ids in devices.items():
        where, many = paths[server_id], f"server {server_id!r} has {count_text(len(ids), 'device')}"
        named = ", ".join(str(i) for i in sorted(ids))
        if product == ATLAS_910 and len(ids) not in _ALLOWED_COUNTS:
            yield warning_problem(where, f"{many} ({named})", "Atlas training servers (910) use 1, 2, 4 or 8 devices")
        elif product == ATLAS_910 and len(ids) in (2, 4) and len({i < _RING_SIZE for i in ids}) == 2:
            yield warning_problem(
                where,
                f"devices {named} of server {server_id!r} are in both rings",
                f"Use {len(ids)} devices of one ring; Atlas training servers (910) have the rings 0-3 and 4-7",
            )
        elif product in (ATLAS_910, ATLAS_A2) and max(ids) > 7:
            yield warning_problem(where, f"server {server_id!r} has device {max(ids)}", "Use devices 0 to 7")
    first = next(iter(counts))
    for server_id, count in counts.items():
        if product == ATLAS_910 and count != counts[first]:
            yield warning_problem(
                paths[server_id],
                f"server {server_id!r} has {count_text(count, 'device')}, but {first!r} has {counts[first]}",
                "Use the same number on every server",
            )
    if product == ATLAS_A3:
        yield from _unequal_super_pod_problems(table, counts)


def _unequal_super_pod_problems(table: RankTable, counts: dict[str, int]) -> Iterator[Problem]:
    sums = [sum(counts.get(server_id, 0) for server_id in pod.server_ids) for pod in table.super_pods]
    names = [repr(pod.super_pod_id) for pod in table.super_pods]
    for at, total in enumerate(sums):
        if total != sums[0]:
            yield warning_problem(
                f"$.super_pod_list[{at}]",
                f"super-pod {names[at]} has {count_text(total, 'device')}, but {names[0]} has {sums[0]}",
                "Use the same number in every super-pod",
            )


def server_path(table: RankTable, server_index: int) -> str:
    """Return the JSON path of a server, or of the list that has its devices."""
    paths = {RANK_LIST: "$.rank_list", model.SERVER_LIST: f"$.server_list[{server_index}]"}
    instances = "$.group_list[0].instance_list"
    return {**paths, model.POD: f"{instances}[{server_index}]"}.get(table.dialect, instances)


def _devices_path(table: RankTable, server_index: int) -> str:
    return server_path(table, server_index) + {model.SERVER_LIST: ".device", model.POD: ".devices"}.get(
        table.dialect, ""
    )
