"""Rank tables of version 2.0: what is read, what HCCL of the Ascend 950 refuses, and the versions of each product."""

from __future__ import annotations

import copy
import json
from typing import Any, Callable

import pytest

from npu_shim.distributed.ranktable.conversion import convert_table
from npu_shim.distributed.ranktable.generate import Host, generate_rank_list
from npu_shim.distributed.ranktable.model import (
    RANK_LIST,
    SERVER_LIST,
    WARNING,
    Device,
    RankTableError,
    Server,
    extra_value,
)
from npu_shim.distributed.ranktable.products import BY_VERSION, PRODUCTS, product_of, refusal_problem
from npu_shim.distributed.ranktable.reader import parse_table, read_with_problems
from npu_shim.distributed.ranktable.rootinfo import parse_rootinfo
from npu_shim.distributed.ranktable.writer import table_text
from npu_shim.launching.job_ranks import assign_server_ranks
from npu_shim.launching.plan import RankSlot

pytestmark = pytest.mark.once

SERVERS_OF_ONE = {
    "version": "1.0",
    "status": "completed",
    "server_count": "1",
    "server_list": [{"server_id": "s", "device": [{"device_id": "0", "device_ip": "10.0.0.1", "rank_id": "0"}]}],
}
SUPER_POD = {
    **copy.deepcopy(SERVERS_OF_ONE),
    "version": "1.2",
    "super_pod_list": [{"super_pod_id": "0", "server_list": [{"server_id": "s"}]}],
}
SUPER_POD["server_list"][0]["device"][0]["super_device_id"] = "12"  # type: ignore[index]


def rank(rank_id: int, device_id: int, instance: str) -> dict[str, Any]:
    """Return a rank with an EID within its server and an IPv4 address of the host in layer 3."""
    inner = {"addr_type": "EID", "addr": f"{rank_id + 160:032x}", "ports": ["0/4", "0/5"], "plane_id": "0"}
    outer = {"addr_type": "IPV4", "addr": f"10.0.0.{rank_id + 1}", "ports": ["d2h"]}
    return {
        "rank_id": rank_id,
        "device_id": device_id,
        "local_id": device_id,
        "device_port": 16666,
        "level_list": [
            {"net_layer": 0, "net_instance_id": instance, "net_type": "TOPO_FILE_DESC", "rank_addr_list": [inner]},
            {"net_layer": 3, "net_instance_id": "all", "net_type": "CLOS", "net_attr": "", "rank_addr_list": [outer]},
        ],
    }


FOUR: dict[str, Any] = {
    "version": "2.0",
    "status": "completed",
    "rank_count": 4,
    "rank_list": [rank(0, 0, "rack0"), rank(1, 1, "rack0"), rank(2, 4, "rack1"), rank(3, 5, "rack1")],
}
Change = Callable[[Any], Any]


def changed(change: Change) -> str:
    made = copy.deepcopy(FOUR)
    change(made)
    return json.dumps(made)


def layer(data: Any, number: int = 0, at: int = 0) -> Any:
    return data["rank_list"][number]["level_list"][at]


def address(data: Any, number: int = 0, at: int = 0) -> Any:
    return layer(data, number, at)["rank_addr_list"][0]


# --- what is read --------------------------------------------------------------
def test_ranks_and_servers_of_a_rank_list() -> None:
    table, problems = read_with_problems(json.dumps(FOUR), "A5")
    assert problems == () and table is not None
    assert (table.dialect, table.version, table.size) == (RANK_LIST, "2.0", 4)
    assert [(device.rank, server.server_id, device.device_id) for server, device in table.placements()] == [
        (0, "rack0", 0),
        (1, "rack0", 1),
        (2, "rack1", 4),
        (3, "rack1", 5),
    ]
    first = table.servers[0].devices[0]
    assert (first.local_id, first.device_ip, first.addresses) == (0, None, (f"{160:032x}",))
    assert [(one.number, one.instance, one.net_type) for one in first.layers] == [
        (0, "rack0", "TOPO_FILE_DESC"),
        (3, "all", "CLOS"),
    ]
    assert first.layers[0].addresses[0].ports == ("0/4", "0/5")
    assert extra_value(first.extras, "device_port") == 16666 and extra_value(first.layers[1].extras, "net_attr") == ""


def test_the_launcher_starts_the_ranks_of_an_instance() -> None:
    table = parse_table(json.dumps(FOUR))
    assert assign_server_ranks(table, 1, "t.json") == [RankSlot(2, 4), RankSlot(3, 5)]
    with pytest.raises(ValueError, match=r"t.json has 2 servers \(rack0, rack1\), and none of them is recognized"):
        assign_server_ranks(table, None, "t.json")


def test_a_layer_without_addresses_is_read() -> None:
    text = changed(lambda d: [layer(d, number).update(rank_addr_list=[]) for number in range(4)])
    table, problems = read_with_problems(text, "A5")
    assert problems == () and table is not None and table.servers[0].devices[0].addresses == ("10.0.0.1",)


def test_a_repeated_device_of_an_instance_belongs_to_another_server() -> None:
    ranks = [{**rank(at, at % 2, "pod"), "local_id": at} for at in range(4)]
    table, problems = read_with_problems(
        changed(lambda d: d.update(rank_list=[ranks[at] for at in (3, 1, 2, 0)])), "A5"
    )
    assert problems == () and table is not None
    assert [server.server_id for server in table.servers] == ["pod", "pod#2"]
    assert [[device.rank for device in server.devices] for server in table.servers] == [[0, 1], [2, 3]]
    assert json.loads(table_text(table))["rank_list"] == ranks


def test_written_text_has_numbers_and_one_line_per_address() -> None:
    one = rank(0, 0, "r")
    one["level_list"][0]["rank_addr_list"] = [{"addr_type": "EID", "addr": "0a", "ports": ["0/4", "0/5"]}]
    table = parse_table(json.dumps({**FOUR, "rank_count": 1, "rank_list": [one]}))
    assert (
        table_text(table)
        == """{
  "version": "2.0",
  "status": "completed",
  "rank_count": 1,
  "rank_list": [
    {
      "rank_id": 0,
      "device_id": 0,
      "local_id": 0,
      "device_port": 16666,
      "level_list": [
        {
          "net_layer": 0,
          "net_instance_id": "r",
          "net_type": "TOPO_FILE_DESC",
          "rank_addr_list": [{"addr_type": "EID", "addr": "0a", "ports": ["0/4", "0/5"]}]
        },
        {
          "net_layer": 3,
          "net_instance_id": "all",
          "net_type": "CLOS",
          "net_attr": "",
          "rank_addr_list": [{"addr_type": "IPV4", "addr": "10.0.0.1", "ports": ["d2h"]}]
        }
      ]
    }
  ]
}
"""
    )


# --- errors --------------------------------------------------------------------
ERRORS: list[tuple[Change, str]] = [
    (lambda d: d.update(rank_list=[]), "$.rank_list: is an empty list. Write a list of at least one object"),
    (lambda d: d.update(rank_count=3), "$.rank_count: is 3, but there are 4 entries in rank_list. Write"),
    (lambda d: d["rank_list"][1].pop("rank_id"), "$.rank_list[1]: has no rank_id. Add rank_id"),
    (lambda d: d["rank_list"][1].pop("local_id"), "$.rank_list[1]: has no local_id. Add local_id"),
    (lambda d: d["rank_list"][2].update(rank_id=1), "$.rank_list[2].rank_id: rank 1 is given twice, first at $.rank_"),
    (lambda d: d["rank_list"][3].update(rank_id=9), "$.rank_list[3].rank_id: is rank 9, but no device has rank 3"),
    (
        lambda d: d["rank_list"][0].update(levels=d["rank_list"][0].pop("level_list")),
        "$.rank_list[0]: has no level_list, but levels. Add level_list",
    ),
    (lambda d: layer(d).pop("net_instance_id"), "$.rank_list[0].level_list[0]: has no net_instance_id. Add"),
    (lambda d: layer(d).pop("rank_addr_list"), "$.rank_list[0].level_list[0]: has no rank_addr_list. Add"),
    (lambda d: address(d).pop("ports"), "$.rank_list[0].level_list[0].rank_addr_list[0]: has no ports. Add ports"),
    (
        lambda d: address(d).update(ports="0/4"),
        '$.rank_list[0].level_list[0].rank_addr_list[0].ports: is "0/4". Write a list of strings: ["0/4", "0/5"]',
    ),
]


@pytest.mark.parametrize("change, text", ERRORS, ids=[text[:70] for _, text in ERRORS])
def test_errors(change: Change, text: str) -> None:
    table, problems = read_with_problems(changed(change), "A5")
    assert table is None and str(problems[0]).startswith(text) and problems[0].severity == "error", problems
    with pytest.raises(RankTableError):
        parse_table(changed(change))


# --- what only HCCL refuses ----------------------------------------------------
LAYER, ADDRESS = "$.rank_list[0].level_list[0]", "$.rank_list[0].level_list[0].rank_addr_list[0]"
WARNINGS: list[tuple[Change, str]] = [
    (lambda d: d.pop("version"), '$: has no version. Write "version": "2.0"'),
    (lambda d: d.update(version=2), '$.version: is the number 2. Write "2" in quotes'),
    (lambda d: d.pop("rank_count"), '$: has no rank_count. Write "rank_count": 4'),
    (lambda d: d.update(rank_count="4"), "$.rank_count: is the string '4'. Write a number without quotes"),
    (lambda d: d["rank_list"][0].update(rank_id="0"), "$.rank_list[0].rank_id: is the string '0'. Write a number"),
    (lambda d: layer(d).update(net_layer="0"), f"{LAYER}.net_layer: is the string '0'. Write a number"),
    (lambda d: address(d).update(plane_id=0), f'{ADDRESS}.plane_id: is 0. Write a string, such as "0"'),
    (lambda d: d["rank_list"][0].update(local_id=65), "$.rank_list[0].local_id: is 65. Write 0 to 64"),
    (
        lambda d: d["rank_list"][1].update(local_id=0),
        "$.rank_list[1].local_id: local_id 0 of 'rack0' is given twice, first at $.rank_list[0].local_id. Write the number",
    ),
    (lambda d: d["rank_list"][0].update(device_port=0), "$.rank_list[0].device_port: is 0. Write a number from 1 to"),
    (lambda d: d["rank_list"][0].update(host_port="9"), "$.rank_list[0].host_port: is '9'. Write a number from 1 to"),
    (
        lambda d: layer(d, 0, 1).update(net_layer=0),
        "$.rank_list[0].level_list[1].net_layer: is 0, after 0. List the layers in ascending order",
    ),
    (lambda d: layer(d, 0, 1).update(net_layer=8), "$.rank_list[0].level_list[1].net_layer: is 8. Write 0 to 7"),
    (lambda d: layer(d).pop("net_type"), f"{LAYER}.net_type: is missing. Write 'TOPO_FILE_DESC' in layer 0"),
    (lambda d: layer(d).update(net_type="CLOS"), f"{LAYER}.net_type: is 'CLOS'. Write 'TOPO_FILE_DESC' in layer 0"),
    (
        lambda d: layer(d, 0, 1).update(net_type="CLOSE"),
        "$.rank_list[0].level_list[1].net_type: is 'CLOSE', which may mean 'CLOS'. Write 'TOPO_FILE_DESC' or 'CLOS' in "
        "layer 3",
    ),
    (lambda d: layer(d).update(net_instance_id="x" * 1025), f"{LAYER}.net_instance_id: has 1025 characters. Shorten"),
    (
        lambda d: layer(d)["rank_addr_list"].append({**address(d), "addr": "f" * 32}),
        "$.rank_list[1].level_list[0].rank_addr_list: has 1 address, but 2 in $.rank_list[0].level_list[0] with the same "
        "net_instance_id. Give each rank of an instance the same number",
    ),
    (
        lambda d: address(d, 1).update(addr=address(d)["addr"]),
        f"$.rank_list[1].level_list[0].rank_addr_list[0].addr: '{160:032x}' is given twice, first at {ADDRESS}.addr. "
        "Copy the EIDs of each device from hccn_tool",
    ),
    (
        lambda d: address(d).update(addr_type="IPv4"),
        f"{ADDRESS}.addr_type: is 'IPv4', which may mean 'IPV4'. Write one of 'EID', 'IPV4', 'IPV6'",
    ),
    (lambda d: address(d).update(addr="10.0.0.1"), f"{ADDRESS}.addr: '10.0.0.1' is not 32 hexadecimal digits. Correct"),
    (
        lambda d: address(d, 0, 1).update(addr="fd00::1"),
        "$.rank_list[0].level_list[1].rank_addr_list[0].addr: 'fd00::1' is not an IPv4 address. Correct it, or addr_type",
    ),
    (lambda d: address(d).update(ports=[]), f"{ADDRESS}.ports: has 0 ports. Write 1 to 16"),
    (lambda d: address(d).update(ports=["0/" + "1" * 40]), f"{ADDRESS}.ports: '0/1111111111111111111111111111111111"),
]


@pytest.mark.parametrize("change, text", WARNINGS, ids=[text[:90] for _, text in WARNINGS])
def test_warnings_do_not_prevent_reading(change: Change, text: str) -> None:
    table, problems = read_with_problems(changed(change))
    assert table is not None and table == parse_table(changed(change))
    assert {problem.severity for problem in problems} == {WARNING} and str(problems[0]).startswith(text), problems


def test_a_device_has_at_most_eight_layers_of_24_addresses() -> None:
    def grow(data: Any) -> None:
        data.update(rank_count=1, rank_list=data["rank_list"][:1])
        first = layer(data)
        data["rank_list"][0]["level_list"] = [{**first, "net_layer": at, "net_type": "CLOS"} for at in range(9)]
        first.update(rank_addr_list=[{**address(data), "addr": f"{at:032x}"} for at in range(25)])
        data["rank_list"][0]["level_list"][0] = first

    texts = [str(problem) for problem in read_with_problems(changed(grow))[1]]
    assert "$.rank_list[0].level_list: has 9 layers. Write at most 8" in texts
    assert f"{LAYER}.rank_addr_list: has 25 addresses. Write at most 24" in texts


# --- versions of the products --------------------------------------------------
TABLES = {"1.0": SERVERS_OF_ONE, "1.2": SUPER_POD, "2.0": FOUR}
REFUSED = {
    ("910", "1.2"): "$.version: is '1.2', but 910 uses '1.0'. Run npu-shim ranktable convert --to 1.0",
    ("A2", "1.2"): "$.version: is '1.2', but A2 uses '1.0'. Run npu-shim ranktable convert --to 1.0",
    (
        "910",
        "2.0",
    ): "$.version: is '2.0', but 910 uses '1.0'. HCCL stops with EI0014. Run npu-shim ranktable convert --to",
    (
        "A2",
        "2.0",
    ): "$.version: is '2.0', but A2 uses '1.0'. HCCL stops with EI0014. Run npu-shim ranktable convert --to",
    ("A3", "2.0"): "$.version: is '2.0', but A3 uses '1.2' or '1.0'. HCCL stops with EI0014. Run npu-shim ranktable",
    (
        "A5",
        "1.0",
    ): "$.version: is '1.0', but A5 uses '2.0'. HCCL stops with EI0014. Run npu-shim ranktable make --product",
    (
        "A5",
        "1.2",
    ): "$.version: is '1.2', but A5 uses '2.0'. HCCL stops with EI0014. Run npu-shim ranktable make --product",
}


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("version", sorted(TABLES))
def test_versions_of_each_product(product: str, version: str) -> None:
    table, problems = read_with_problems(json.dumps(TABLES[version]), product)
    texts = [str(problem) for problem in problems if problem.path == "$.version"]
    wanted = REFUSED.get((product, version))
    assert [text[: len(wanted or "")] for text in texts] == ([wanted] if wanted else [])
    assert table is not None and (refusal_problem(table, product) is not None) == ("EI0014" in "".join(texts))
    assert read_with_problems(json.dumps(TABLES[version]), BY_VERSION)[1] == ()
    assert product_of(table) == {"1.0": "910", "1.2": "A3", "2.0": "A5"}[version]


def test_an_a5_needs_a_version() -> None:
    devices = [{"device_id": "0", "device_ip": "10.0.0.1"}]
    pods = {"group_count": "1", "group_list": [{"instance_count": "1", "instance_list": [{"devices": devices}]}]}
    pods["group_list"][0]["instance_list"][0]["server_id"] = "s"  # type: ignore[index]
    assert [str(problem) for problem in read_with_problems(json.dumps(pods), "A5")[1]] == [
        "$: has no version, but A5 uses '2.0'. HCCL stops with EI0014. Run npu-shim ranktable make --product A5"
    ]
    assert read_with_problems(json.dumps(pods), "A2")[1] == ()


# --- conversion ----------------------------------------------------------------
def test_conversion_between_the_versions() -> None:
    table = parse_table(json.dumps(SUPER_POD))
    servers, dropped = convert_table(table, "1.0")
    assert servers == parse_table(json.dumps(SERVERS_OF_ONE)) and dropped == (
        "super_pod_list",
        "super_device_id",
        "super_pod_id",
    )
    assert convert_table(table, "1.2") == (table, ()) and convert_table(table, SERVER_LIST) == (table, ())
    with pytest.raises(
        ValueError, match="version '1.2' needs a super_pod_list and the super_device_id of each device, "
    ):
        convert_table(servers, "1.2")
    with pytest.raises(
        ValueError, match="a server_list of version 1.2 does not have. Make a new table from each host's"
    ):
        convert_table(table, "2.0")


def test_version_2_keeps_ports_and_drops_layers() -> None:
    table = parse_table(json.dumps(FOUR))
    assert convert_table(table, "2.0") == (table, ())
    made, dropped = convert_table(table, "1.0")
    assert made.servers[1] == Server(
        "rack1",
        (
            Device(2, 4, extras=(("device_port", '"16666"'),)),
            Device(3, 5, extras=(("device_port", '"16666"'),)),
        ),
    )
    assert made.version == "1.0" and dropped[:2] == ("local_id", "level_list") and "device_port" not in dropped
    with pytest.raises(ValueError, match="version '1.2' needs a super_pod_list"):
        convert_table(table, "1.2")


# --- hccl_rootinfo.json --------------------------------------------------------
def root_info(*device_ids: int, instance: str = "os0", **keys: Any) -> str:
    """Return the text of the file of a host."""
    listed = [rank(number, number, instance) for number in device_ids]
    for one in listed:
        del one["rank_id"]
    made = {"version": "2.0", "topo_file_path": "/topo.json", "rank_count": len(listed), "rank_list": listed, **keys}
    return json.dumps(made)


def test_a_table_is_made_from_the_files_of_the_hosts() -> None:
    known = {name: parse_rootinfo(root_info(0, 1, instance=f"os-{name}"), name).devices for name in "ab"}
    table, placeholders = generate_rank_list([Host("b", (1,)), Host("a", None)], known)
    assert (
        placeholders == ()
        and parse_table(table_text(table)) == table
        and read_with_problems(table_text(table), "A5")[0] == table
    )
    assert [(s.server_id, d.rank, d.device_id) for s, d in table.placements()] == [
        ("os-b", 0, 1),
        ("os-a", 1, 0),
        ("os-a", 2, 1),
    ]
    with pytest.raises(
        ValueError, match="host a: its hccl_rootinfo.json has no device 7; it has 0, 1. Name only these."
    ):
        generate_rank_list([Host("a", (7,))], known)


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("{", "f: line 1, column 2: is not JSON"),
        ("[]", "f: $: is an empty list. Write one object: { ... }"),
        ("{}", "f: $: has no version. Add version"),
        (root_info(0, rank_lst=[]).replace('"rank_list"', '"ranks"'), "f: $: has no rank_list, but rank_lst. Add"),
        (root_info(0, 0), "f: $.rank_list[1].device_id: device 0 is given twice. Name each device of the host once"),
    ],
)
def test_errors_of_a_root_info(text: str, wanted: str) -> None:
    with pytest.raises(RankTableError) as raised:
        parse_rootinfo(text, "f")
    assert str(raised.value).startswith(wanted)
