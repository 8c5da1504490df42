"""Write rank tables: round trips in every dialect and between dialects."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from npu_shim.distributed.ranktable.conversion import convert_table
from npu_shim.distributed.ranktable.model import (
    DIALECTS,
    LAB,
    POD,
    RANK_LIST,
    SERVER_LIST,
    Device,
    NetAddress,
    NetLayer,
    RankTable,
    Server,
    SuperPod,
)
from npu_shim.distributed.ranktable.products import PRODUCTS
from npu_shim.distributed.ranktable.reader import parse_table, read_with_problems
from npu_shim.distributed.ranktable.writer import table_text, table_to_json

NAMES = st.text('s0.:/"\\\n é,#]}', min_size=1, max_size=6)
VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    2.5,
    "",
    "0",
    "x",
    [],
    {},
    [1],
    ["eth0", None],
    {"a": {"b": []}},
    [{}],
    [{"rank_id": "0"}],
]
JSON = st.sampled_from(VALUES)
few = settings(max_examples=25, deadline=None, database=None)
fewer = settings(few, max_examples=8)  # of each of 16 pairs
ADDRESSES = st.none() | st.sampled_from(["10.0.0.1", "fd00::1", "192.168.100.1"])


def extras(key: str) -> st.SearchStrategy[tuple[tuple[str, str], ...]]:
    """Return at most two keys that no dialect has."""
    return st.dictionaries(st.sampled_from([f"{key}_a", f"{key}_b"]), JSON, max_size=2).map(
        lambda found: tuple((name, json.dumps(value, sort_keys=True)) for name, value in sorted(found.items()))
    )


@st.composite
def rank_lists(draw: Any) -> RankTable:
    """Return tables of version 2.0, with servers and ranks in order."""
    counts = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    instances = draw(st.lists(NAMES, min_size=len(counts), max_size=len(counts), unique=True))
    addresses = st.lists(
        st.builds(NetAddress, NAMES, NAMES, st.lists(NAMES, max_size=2).map(tuple), extras("address")), max_size=2
    ).map(tuple)
    outer = st.lists(
        st.builds(NetLayer, st.integers(1, 7), NAMES, st.none() | NAMES, addresses, extras("layer")), max_size=2
    )
    servers, rank = [], 0
    for instance, count in zip(instances, counts):
        ids = draw(st.lists(st.integers(0, 15), min_size=count, max_size=count, unique=True))
        devices = []
        for device_id in ids:
            inner = NetLayer(0, instance, draw(st.none() | NAMES), draw(addresses), draw(extras("layer")))
            own = {"local_id": draw(st.integers(0, 64)), "layers": (inner, *draw(outer))}
            devices.append(Device(rank, device_id, extras=draw(extras("device")), **own))
            rank += 1
        servers.append(Server(instance, tuple(devices)))
    status = draw(st.sampled_from(["completed", "initializing"]))
    return RankTable(tuple(servers), RANK_LIST, draw(st.none() | NAMES), status, extras=draw(extras("top")))


@st.composite
def tables(draw: Any, dialect: str) -> RankTable:
    """Return tables with all the features of a dialect."""
    if dialect == RANK_LIST:
        return draw(rank_lists())
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    server_ids = draw(st.lists(NAMES, min_size=len(counts), max_size=len(counts), unique=True))
    ranks = list(range(sum(counts)))
    if dialect != POD:
        ranks = draw(st.permutations(ranks))
    servers, left = [], iter(ranks)
    for server_id, count in zip(server_ids, counts):
        ids = draw(st.lists(st.integers(0, 15), min_size=count, max_size=count, unique=True))
        made = tuple(
            Device(next(left), i, draw(ADDRESSES), draw(st.none() | NAMES), draw(extras("device"))) for i in ids
        )
        servers.append(Server(server_id, made, extras=() if dialect == LAB else draw(extras("server"))))
    common: dict[str, Any] = {
        "status": draw(st.sampled_from(["completed", "initializing"])),
        "extras": draw(extras("top")),
    }
    if dialect == SERVER_LIST:
        with_pods = draw(st.booleans())
        pods = (SuperPod(draw(NAMES), tuple(server_ids)),) if with_pods else ()
        return RankTable(tuple(servers), dialect, draw(st.none() | NAMES), super_pods=pods, **common)
    if dialect == POD:
        pod_names = draw(
            st.lists(
                st.none() | NAMES, min_size=len(servers), max_size=len(servers), unique_by=lambda name: name or object()
            )
        )
        servers = [Server(s.server_id, s.devices, name, s.extras) for s, name in zip(servers, pod_names)]
    return RankTable(
        tuple(servers),
        dialect,
        group_name=draw(st.none() | NAMES) if dialect == POD else draw(NAMES),
        group_extras=draw(extras("group")),
        **common,
    )


@pytest.mark.once
@pytest.mark.parametrize("dialect", DIALECTS)
@few
@given(data=st.data())
@pytest.mark.slow
def test_written_table_is_read_unchanged(dialect: str, data: Any) -> None:
    table = data.draw(tables(dialect))
    written = table_text(table)
    assert parse_table(written) == table
    assert table_text(parse_table(written)) == written and json.loads(written) == table_to_json(table)


@pytest.mark.once
@pytest.mark.parametrize("source", DIALECTS)
@pytest.mark.parametrize("target", DIALECTS)
@fewer
@given(data=st.data())
@pytest.mark.slow
def test_conversion_keeps_ranks_and_devices(source: str, target: str, data: Any) -> None:
    table = data.draw(tables(source))
    if target == POD and source != POD and not in_order(table):
        with pytest.raises(ValueError, match="the dialect 'pod' has no rank ids and numbers the ranks in file order"):
            convert_table(table, target)
        return
    if target == RANK_LIST and source != RANK_LIST:
        with pytest.raises(ValueError, match="version '2.0' needs the level_list of each device"):
            convert_table(table, target)
        return
    made, dropped = convert_table(table, target)
    assert made.dialect == target and parse_table(table_text(made)) == made
    assert placed(made) == placed(table)
    if source == target:
        assert made == table and dropped == ()
    if source == RANK_LIST:
        return
    back, _ = convert_table(made, source)
    assert placed(back) == placed(table)


def placed(table: RankTable) -> list[tuple[int, str, int, Any]]:
    """Return rank, server, device and address of every rank."""
    return [
        (device.rank, server.server_id, device.device_id, device.device_ip) for server, device in table.placements()
    ]


def in_order(table: RankTable) -> bool:
    """Return True if the ranks of each server are consecutive."""
    return all(
        max(ranks) - min(ranks) == len(ranks) - 1
        for ranks in ([device.rank for device in server.devices] for server in table.servers)
    )


@pytest.mark.once
@few
@given(
    st.text(max_size=80)
    | JSON.map(json.dumps)
    | st.builds(
        lambda key, value: json.dumps({key: value}), st.sampled_from(["server_list", "rank_list", "group_list"]), JSON
    )
)
@pytest.mark.slow
def test_any_text_is_read_without_an_exception(written: str) -> None:
    for product in (None, *PRODUCTS):
        table, problems = read_with_problems(written, product)
        assert (table is not None) or problems


@pytest.mark.once
@few
@given(data=st.data())
@pytest.mark.slow
def test_any_damaged_table_is_read_without_an_exception(data: Any) -> None:
    """Replace one value anywhere in a table."""
    made = table_to_json(data.draw(st.sampled_from(DIALECTS).flatmap(tables)))
    where: Any = made
    while True:
        key = data.draw(st.sampled_from(sorted(where, key=str) if isinstance(where, dict) else range(len(where))))
        inside = where[key]
        if not isinstance(inside, (dict, list)) or not inside or data.draw(st.booleans()):
            break
        where = inside
    where[key] = data.draw(JSON)
    table, problems = read_with_problems(json.dumps(made), "910")
    assert (table is not None) or problems


# --- keys that a dialect does not have -------------------------------------------
def test_dropped_keys_are_returned() -> None:
    table = RankTable(
        (Server("s", (Device(0, 0, "10.0.0.1", "7"),), extras=(("host_ip", '"10.0.0.9"'),)),),
        SERVER_LIST,
        "1.2",
        super_pods=(SuperPod("0", ("s",)),),
    )
    made, dropped = convert_table(table, LAB)
    assert dropped == ("super_pod_list", "host_ip", "super_pod_id") and parse_table(table_text(made)) == made
    assert dict(made.extras)["para_plane_nic_name"] == '["eth0"]' and dict(made.extras)["chip_info"] == '"910"'
    back, dropped = convert_table(made, SERVER_LIST)
    assert dropped == (
        "board_id",
        "chip_info",
        "deploy_mode",
        "para_plane_nic_location",
        "para_plane_nic_name",
        "para_plane_nic_num",
        "group_name",
    )
    assert back == RankTable((Server("s", (Device(0, 0, "10.0.0.1", "7"),)),), SERVER_LIST, "1.0")
    assert convert_table(table, POD)[1] == ("super_pod_list", "host_ip", "super_device_id", "super_pod_id")


def test_pods_of_one_server_become_one_server() -> None:
    table = RankTable((Server("s", (Device(0, 0),), "a"), Server("s", (Device(1, 4),), "b")), POD)
    assert convert_table(table, SERVER_LIST)[0].servers == (Server("s", (Device(0, 0), Device(1, 4))),)


def test_unknown_target() -> None:
    with pytest.raises(
        ValueError, match="target='json' is not allowed. Use one of server_list, rank_list, lab, pod, 1.0, 1.2, 2.0"
    ):
        convert_table(RankTable((Server("s", (Device(0, 0),)),)), "json")
