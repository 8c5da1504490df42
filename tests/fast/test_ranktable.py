"""Read rank tables of every dialect; report every kind of problem with its path and fix."""

from __future__ import annotations

import copy
import json
from typing import Any, Callable

import pytest

from npu_shim.distributed.ranktable.model import LAB, POD, SERVER_LIST, WARNING, RankTableError, SuperPod, extra_value
from npu_shim.distributed.ranktable.reader import parse_table, read_table, read_with_problems

TWO_SERVERS: dict[str, Any] = {
    "version": "1.0",
    "status": "completed",
    "server_count": "2",
    "server_list": [
        {
            "server_id": "node_0",
            "device": [
                {"device_id": "0", "device_ip": "10.1.0.1", "rank_id": "0"},
                {"device_id": "1", "device_ip": "10.1.0.2", "rank_id": "1"},
            ],
        },
        {
            "server_id": "node_1",
            "host_ip": "172.16.0.2",
            "device": [
                {"device_id": "4", "device_ip": "10.1.1.1", "rank_id": "2"},
                {"device_id": "5", "device_ip": "fd00::1", "rank_id": "3", "device_port": "16666"},
            ],
        },
    ],
}
SUPER_PODS: dict[str, Any] = {
    **copy.deepcopy(TWO_SERVERS),
    "version": "1.2",
    "super_pod_list": [
        {"super_pod_id": "0", "server_list": [{"server_id": "node_0"}]},
        {"super_pod_id": "1", "server_list": [{"server_id": "node_1"}]},
    ],
}
for one in SUPER_PODS["server_list"]:
    for device in one["device"]:
        device["super_device_id"] = device["rank_id"]
ONE_EACH: dict[str, Any] = {  # the dialect lab: an instance for each rank
    "board_id": "0x002f",
    "chip_info": "910",
    "deploy_mode": "lab",
    "group_count": "1",
    "status": "completed",
    "para_plane_nic_location": "device",
    "para_plane_nic_name": ["eth0", "eth1"],
    "para_plane_nic_num": "2",
    "group_list": [
        {
            "device_num": "2",
            "server_num": "1",
            "group_name": "",
            "instance_count": "2",
            "instance_list": [
                {"devices": [{"device_id": "0", "device_ip": "10.1.0.1"}], "rank_id": "0", "server_id": "10.0.0.1"},
                {"devices": [{"device_id": "1", "device_ip": "10.1.0.2"}], "rank_id": "1", "server_id": "10.0.0.1"},
            ],
        }
    ],
}
PODS: dict[str, Any] = {  # the dialect of cloud platforms: an instance for each pod, and no rank ids
    "group_count": "1",
    "status": "completed",
    "group_list": [
        {
            "group_name": "worker",
            "device_count": "3",
            "instance_count": "2",
            "instance_list": [
                {
                    "devices": [
                        {"device_id": "4", "device_ip": "10.1.0.1"},
                        {"device_id": "6", "device_ip": "10.1.0.2"},
                    ],
                    "pod_name": "ascend0",
                    "server_id": "10.0.0.1",
                },
                {
                    "devices": [{"device_id": "0", "device_ip": "10.1.0.3"}],
                    "pod_name": "ascend1",
                    "server_id": "10.0.0.2",
                },
            ],
        }
    ],
}


def ranks_of(data: Any) -> list[tuple[int, str, int]]:
    """Return rank, server and device of all ranks."""
    placed = parse_table(json.dumps(data)).placements()
    return [(device.rank, server.server_id, device.device_id) for server, device in placed]


# --- what is read --------------------------------------------------------------
def test_server_list() -> None:
    table = parse_table(json.dumps(TWO_SERVERS))
    assert (table.dialect, table.version, table.status, table.size) == (SERVER_LIST, "1.0", "completed", 4)
    assert ranks_of(TWO_SERVERS) == [(0, "node_0", 0), (1, "node_0", 1), (2, "node_1", 4), (3, "node_1", 5)]
    assert [server.address for server in table.servers] == ["node_0", "172.16.0.2"]
    assert extra_value(table.servers[1].devices[1].extras, "device_port") == "16666"
    assert extra_value(table.extras, "no such key") is None


def test_super_pods() -> None:
    table = parse_table(json.dumps(SUPER_PODS))
    assert table.super_pods == (SuperPod("0", ("node_0",)), SuperPod("1", ("node_1",)))
    assert [device.super_device_id for _, device in table.placements()] == ["0", "1", "2", "3"]


def test_lab_has_one_instance_per_rank() -> None:
    table = parse_table(json.dumps(ONE_EACH))
    assert (table.dialect, table.version, table.group_name) == (LAB, None, "")
    assert ranks_of(ONE_EACH) == [(0, "10.0.0.1", 0), (1, "10.0.0.1", 1)]
    assert extra_value(table.extras, "para_plane_nic_name") == ["eth0", "eth1"]
    assert extra_value(table.extras, "board_id") == "0x002f"


def test_pod_has_one_instance_per_pod_and_ranks_in_file_order() -> None:
    table = parse_table(json.dumps(PODS))
    assert (table.dialect, table.group_name, [server.pod_name for server in table.servers]) == (
        POD,
        "worker",
        ["ascend0", "ascend1"],
    )
    assert ranks_of(PODS) == [(0, "10.0.0.1", 4), (1, "10.0.0.1", 6), (2, "10.0.0.2", 0)]


@pytest.mark.parametrize("data", [TWO_SERVERS, SUPER_PODS, ONE_EACH, PODS], ids=["servers", "super-pods", "lab", "pod"])
def test_valid_tables_with_numbers_or_strings_have_no_problems(data: Any) -> None:
    numbers = (
        "rank_id",
        "device_id",
        "server_count",
        "group_count",
        "device_num",
        "server_num",
        "device_count",
        "instance_count",
    )
    as_numbers = json.loads(
        json.dumps(data),
        object_hook=lambda entry: {key: int(value) if key in numbers else value for key, value in entry.items()},
    )
    assert as_numbers != data and parse_table(json.dumps(as_numbers)) == parse_table(json.dumps(data))
    assert read_with_problems(json.dumps(data), "A3") == (parse_table(json.dumps(data)), ())


def test_byte_order_mark_is_ignored(tmp_path: Any) -> None:
    path = tmp_path / "table.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(TWO_SERVERS).encode())
    assert read_table(str(path)) == parse_table(json.dumps(TWO_SERVERS))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(RankTableError, match=r"table.json: \$: the file is not text .*Save it as UTF-8"):
        read_table(str(path))


def test_error_has_the_first_problem_and_the_number_of_others() -> None:
    data = copy.deepcopy(TWO_SERVERS)
    data["server_count"] = "3"
    data["server_list"][1]["device"][0]["rank_id"] = "0"
    with pytest.raises(RankTableError) as caught:
        parse_table(json.dumps(data), "t.json")
    assert str(caught.value).startswith("t.json: $.server_count: is '3', but there are 2 entries")
    assert str(caught.value).endswith("(1 more: npu-shim ranktable check t.json)") and len(caught.value.problems) == 2


# --- text that is not JSON -----------------------------------------------------
MANUAL = """{
"status":"completed",  // whether it can be used; "quoted"
"version":"1.0", "server_count":"1",
"server_list": [ /* of the
    job */ {"server_id":"http://node_0", # its name
    "device":[{"device_id":"0","device_ip":"10.1.0.1","rank_id":"0",},], }]}
"""
NOT_JSON = [
    (
        MANUAL,
        [
            'line 2, column 24: is not JSON: it has a comment (// whether it can be used; "quoted"), and 2 more. JSON '
            "has no comments. Remove them, or run npu-shim ranktable convert",
            "line 6, column 68: is not JSON: it has a comma after the last entry, and 2 more. Remove the comma before "
            "the closing bracket, or run npu-shim ranktable convert",
        ],
    ),
    ("", ["line 1, column 1: is not JSON: expecting value. The file is empty. Run npu-shim ranktable make"]),
    (
        "\n{'version': '1.0'}",
        [
            "line 2, column 2: is not JSON: expecting property name enclosed in double quotes in \"{'version': "
            "'1.0'}\". "
            "Write names in double quotes"
        ],
    ),
    (
        "{\n",
        [
            "line 2, column 1: is not JSON: expecting property name enclosed in double quotes. Write names in double "
            "quotes, and no comma after the last entry"
        ],
    ),
    (
        '{"a": [1}',
        [
            "line 1, column 9: is not JSON: expecting ',' delimiter in '{\"a\": [1}'. Put a comma between entries, "
            "and close "
            "each bracket"
        ],
    ),
    (
        '{"a": 1, b: 2}',
        [
            "line 1, column 10: is not JSON: expecting property name enclosed in double quotes in '{\"a\": 1, b: 2}'. "
            "Write names in double quotes, and no comma after the last entry"
        ],
    ),
    (
        "{} {}",
        ["line 1, column 4: is not JSON: extra data in '{} {}'. Keep one object"],
    ),
    (
        '{"a": nothing}',
        [
            "line 1, column 7: is not JSON: expecting value in '{\"a\": nothing}'. Correct it, or run npu-shim "
            "ranktable make for a new table"
        ],
    ),
    ('{"a": NaN}', ["$: is not JSON: NaN is not a number. Write a number"]),
    (
        '{"a": Infinity, // no number\n}',
        [
            "line 1, column 17: is not JSON: it has a comment (// no number). JSON has no comments. Remove them, or "
            "run npu-shim ranktable convert",
            "line 1, column 15: is not JSON: it has a comma after the last entry. Remove the comma before the closing "
            "bracket, or run npu-shim ranktable convert",
            "$: is not JSON: Infinity is not a number. Write a number",
        ],
    ),
    (
        '{"rank_id": "0", "rank_id": "1"}',
        ['$: the key \'rank_id\' is given twice in one object, as "0" and as "1". Keep one of them'],
    ),
    ("[" * 100000, ["$: the brackets are nested too deeply. Write a table with fewer levels"]),
]


@pytest.mark.parametrize("text, wanted", NOT_JSON, ids=[n[1][0][:60] for n in NOT_JSON])
def test_text_that_is_not_json(text: str, wanted: list[str]) -> None:
    table, problems = read_with_problems(text)
    assert [str(problem) for problem in problems] == wanted
    with pytest.raises(RankTableError):
        parse_table(text)
    assert (table is not None) == (text == MANUAL)  # without comments and commas it is a table
    if table is not None:
        assert table.servers[0].server_id == "http://node_0"


# --- JSON that is not a rank table, or does not describe a job ---------------------------
class Replacement:
    """A replacement of the whole table."""

    def __init__(self, data: Any) -> None:
        self.data = data


def changed(data: dict[str, Any], change: Callable[[Any], Any]) -> Any:
    """Return a copy of a table after a change."""
    made = copy.deepcopy(data)
    given = change(made)
    return given.data if isinstance(given, Replacement) else made


def devices(data: Any, server: int) -> list[dict[str, Any]]:
    return data["server_list"][server]["device"]


def instances(data: Any) -> list[dict[str, Any]]:
    return data["group_list"][0]["instance_list"]


ERRORS: list[tuple[dict[str, Any], Callable[[Any], Any], str]] = [
    (TWO_SERVERS, lambda d: Replacement([d]), "$: is a list. Write one object: { ... }"),
    (
        TWO_SERVERS,
        lambda d: Replacement({"server_lst": []}),
        "$: has none of server_list, rank_list and group_list, but server_lst. Add server_list (versions 1.0 and 1.2), "
        "rank_list (version 2.0) or group_list (older forms)",
    ),
    (
        TWO_SERVERS,
        lambda d: d.update(rank_list=[]),
        "$: has both server_list and rank_list. Keep the one that describes the job",
    ),
    (
        TWO_SERVERS,
        lambda d: d.update(status="done"),
        "$.status: is 'done'. Write 'completed'; 'initializing' marks an unfinished table",
    ),
    (TWO_SERVERS, lambda d: d.update(status=None), '$.status: is null. Write a string: "..."'),
    (
        TWO_SERVERS,
        lambda d: d.update(server_list=[]),
        "$.server_list: is an empty list. Write a list of at least one object: [{ ... }]",
    ),
    (
        TWO_SERVERS,
        lambda d: d.update(server_list={}),
        "$.server_list: is an object. Write a list of at least one object",
    ),
    (TWO_SERVERS, lambda d: d["server_list"].append(3), "$.server_list[2]: is 3. Write an object: { ... }"),
    (
        TWO_SERVERS,
        lambda d: d.update(server_count="3"),
        '$.server_count: is \'3\', but there are 2 entries in server_list. Write "server_count": "2", or complete the '
        "list",
    ),
    (TWO_SERVERS, lambda d: d["server_list"][1].pop("server_id"), "$.server_list[1]: has no server_id. Add server_id"),
    (
        TWO_SERVERS,
        lambda d: d["server_list"][1].update(server_id=""),
        '$.server_list[1].server_id: is "". Write a string: "..."',
    ),
    (
        TWO_SERVERS,
        lambda d: d["server_list"][1].update(server_id="node_0"),
        "$.server_list[1].server_id: 'node_0' is given twice, first at $.server_list[0].server_id. List all devices "
        "of a "
        "server in one entry, or rename a server",
    ),
    (
        TWO_SERVERS,
        lambda d: d["server_list"][1].update(devices=d["server_list"][1].pop("device")),
        "$.server_list[1]: has no device, but devices. Add device",
    ),
    (TWO_SERVERS, lambda d: devices(d, 0)[1].pop("rank_id"), "$.server_list[0].device[1]: has no rank_id. Add rank_id"),
    (
        TWO_SERVERS,
        lambda d: devices(d, 0)[1].update(rank_id="-1"),
        "$.server_list[0].device[1].rank_id: is '-1'. Write an integer of at least 0, such as \"0\"",
    ),
    (
        TWO_SERVERS,
        lambda d: devices(d, 0)[1].update(rank_id=10**4000),
        "$.server_list[0].device[1].rank_id: is '1000000000000000000000000000000000000000'. Write an integer",
    ),
    (
        TWO_SERVERS,
        lambda d: devices(d, 0)[1].update(device_id="x"),
        "$.server_list[0].device[1].device_id: is 'x'. Write an integer",
    ),
    (
        TWO_SERVERS,
        lambda d: devices(d, 0)[1].update(device_id=1.5),
        "$.server_list[0].device[1].device_id: is 1.5. Write a string",
    ),
    (
        TWO_SERVERS,
        lambda d: devices(d, 1)[1].update(rank_id="2"),
        "$.server_list[1].device[1].rank_id: rank 2 is given twice, first at $.server_list[1].device[0].rank_id. Use "
        "each rank from 0 to 3 once; rank 3 is missing",
    ),
    (
        TWO_SERVERS,
        lambda d: devices(d, 1)[1].update(rank_id="4"),
        "$.server_list[1].device[1].rank_id: is rank 4, but no device has rank 3. Use each rank from 0 to 3 once",
    ),
    (
        TWO_SERVERS,
        lambda d: devices(d, 1)[1].update(device_id="4"),
        "$.server_list[1].device[1].device_id: device 4 of server 'node_1' is given twice, first at "
        "$.server_list[1].device[0].device_id. Name another device; each device runs one rank",
    ),
    (
        SUPER_PODS,
        lambda d: d["super_pod_list"][1]["server_list"][0].update(server_id="node_2"),
        "$.super_pod_list[1].server_list[0].server_id: 'node_2' is not in server_list. Use one of node_0, node_1",
    ),
    (
        SUPER_PODS,
        lambda d: d["super_pod_list"][1]["server_list"].append({"server_id": "node_0"}),
        "$.super_pod_list[1].server_list[1].server_id: 'node_0' is given twice, first at "
        "$.super_pod_list[0].server_list[0].server_id. Keep it in one super-pod",
    ),
    (
        SUPER_PODS,
        lambda d: d["super_pod_list"].pop(),
        "$.server_list[1].server_id: 'node_1' is in no super-pod. Add it to an entry of super_pod_list",
    ),
    (ONE_EACH, lambda d: d.update(group_count="2"), "$.group_count: is '2', but there is 1 entry in group_list"),
    (
        ONE_EACH,
        lambda d: d.update(group_count="2", group_list=d["group_list"] * 2),
        "$.group_list: has 2 groups. Write one table for each job",
    ),
    (
        ONE_EACH,
        lambda d: d["group_list"][0].update(instance_count="1"),
        "$.group_list[0].instance_count: is '1', but there are 2 entries in instance_list",
    ),
    (
        ONE_EACH,
        lambda d: d["group_list"][0].update(device_num="8"),
        '$.group_list[0].device_num: is \'8\', but there are 2 devices in instance_list. Write "device_num": "2", or '
        "complete the list",
    ),
    (
        ONE_EACH,
        lambda d: d["group_list"][0].update(server_num="2"),
        "$.group_list[0].server_num: is '2', but there is 1 server in instance_list",
    ),
    (
        ONE_EACH,
        lambda d: instances(d)[0]["devices"].append({"device_id": "2"}),
        "$.group_list[0].instance_list[0].devices: has 2 devices. Keep one device in an instance with a rank_id",
    ),
    (
        ONE_EACH,
        lambda d: instances(d)[1].pop("rank_id"),
        "$.group_list[0].instance_list[1]: has no rank_id. Add rank_id",
    ),
    (
        ONE_EACH,
        lambda d: instances(d)[1].update(rank_id="0"),
        "$.group_list[0].instance_list[1].rank_id: rank 0 is given twice, first at "
        "$.group_list[0].instance_list[0].rank_id. Use each rank from 0 to 1 once; rank 1 is missing",
    ),
    (
        ONE_EACH,
        lambda d: instances(d)[1]["devices"][0].update(device_id="0"),
        "$.group_list[0].instance_list[1].devices[0].device_id: device 0 of server '10.0.0.1' is given twice, first at "
        "$.group_list[0].instance_list[0].devices[0].device_id",
    ),
    (
        PODS,
        lambda d: d["group_list"][0].update(device_count="8"),
        "$.group_list[0].device_count: is '8', but there are 3 devices in instance_list",
    ),
    (
        PODS,
        lambda d: instances(d)[1].update(pod_name="ascend0"),
        "$.group_list[0].instance_list[1].pod_name: 'ascend0' is given twice, first at "
        "$.group_list[0].instance_list[0].pod_name. Give each pod its own name",
    ),
    (
        PODS,
        lambda d: instances(d)[1].update(server_id="10.0.0.1", devices=[{"device_id": "6"}]),
        "$.group_list[0].instance_list[1].devices[0].device_id: device 6 of server '10.0.0.1' is given twice, first at "
        "$.group_list[0].instance_list[0].devices[1].device_id",
    ),
]


@pytest.mark.parametrize("data, change, text", ERRORS, ids=[e[2][:70] for e in ERRORS])
def test_errors(data: Any, change: Any, text: str) -> None:
    made = json.dumps(changed(data, change))
    table, problems = read_with_problems(made)
    assert table is None
    assert any(str(problem).startswith(text) and problem.severity == "error" for problem in problems), problems
    with pytest.raises(RankTableError):
        parse_table(made)


# --- problems that only NPUs reject ----------------------------------------------------
def server(*ids: int) -> dict[str, Any]:
    """Return a table of one server with these devices."""
    return {
        "version": "1.0",
        "status": "completed",
        "server_count": "1",
        "server_list": [
            {
                "server_id": "s",
                "device": [
                    {"device_id": str(i), "device_ip": f"10.0.0.{i + 1}", "rank_id": str(rank)}
                    for rank, i in enumerate(ids)
                ],
            }
        ],
    }


WARNINGS: list[tuple[dict[str, Any], Callable[[Any], Any], str, str]] = [
    (
        TWO_SERVERS,
        lambda d: d.update(status="initializing"),
        "910",
        "$.status: is 'initializing': the table is not ready. Wait until it is 'completed'",
    ),
    (TWO_SERVERS, lambda d: d.pop("version"), "910", '$: has no version. Write "version": "1.0"'),
    (
        TWO_SERVERS,
        lambda d: d.update(version="1.2"),
        "A3",
        "$: has no super_pod_list, which version 1.2 needs. Add it",
    ),
    (
        SUPER_PODS,
        lambda d: d.update(version="1.0"),
        "A3",
        "$.version: is '1.0', but there is a super_pod_list. Write \"version\"",
    ),
    (TWO_SERVERS, lambda d: d.pop("server_count"), "910", '$: has no server_count. Write "server_count": "2"'),
    (
        TWO_SERVERS,
        lambda d: d["server_list"][0].update(server_id="n" * 64),
        "910",
        "$.server_list[0]: the server_id has 64 characters. Shorten it to 63",
    ),
    (
        TWO_SERVERS,
        lambda d: devices(d, 1)[0].update(device_ip="10.1.0.2"),
        "910",
        "$.server_list[1].device[0].device_ip: '10.1.0.2' is given twice, first at "
        "$.server_list[0].device[1].device_ip. "
        "Copy the address of each device from address_N in /etc/hccn.conf of the server",
    ),
    (
        TWO_SERVERS,
        lambda d: devices(d, 1)[0].update(device_ip="10.1.0"),
        "910",
        "$.server_list[1].device[0].device_ip: '10.1.0' is not an IPv4 or IPv6 address. Copy it from address_N",
    ),
    (
        TWO_SERVERS,
        lambda d: devices(d, 1)[0].pop("device_ip"),
        "910",
        "$.server_list[1].device[0]: has no device_ip. NPUs need it. Copy address_N from /etc/hccn.conf of the server",
    ),
    (
        ONE_EACH,
        lambda d: instances(d)[1].update(pod_name="x"),
        "910",
        "$.group_list[0].instance_list[1].pod_name: is not a key of an instance. It is ignored; remove it",
    ),
    (
        ONE_EACH,
        lambda d: d.update(para_plane_nic_num="8"),
        "910",
        "$.para_plane_nic_num: is '8', but there are 2 entries in para_plane_nic_name",
    ),
    (
        server(0, 1, 2),
        lambda d: None,
        "910",
        "$.server_list[0].device: server 's' has 3 devices (0, 1, 2). Atlas training servers (910) use 1, 2, 4 or 8 "
        "devices",
    ),
    (
        server(3, 4),
        lambda d: None,
        "910",
        "$.server_list[0].device: devices 3, 4 of server 's' are in both rings. Use 2 devices of one ring; Atlas "
        "training servers (910) have the rings 0-3 and 4-7",
    ),
    (
        server(0, 1, 4, 5),
        lambda d: None,
        "910",
        "$.server_list[0].device: devices 0, 1, 4, 5 of server 's' are in both rings. Use 4 devices of one ring; "
        "Atlas training servers (910) have the rings 0-3 and 4-7",
    ),
    (
        server(8),
        lambda d: None,
        "910",
        "$.server_list[0].device: server 's' has device 8. Use devices 0 to 7",
    ),
    (
        server(8),
        lambda d: None,
        "A2",
        "$.server_list[0].device: server 's' has device 8. Use devices 0 to 7",
    ),
    (
        PODS,
        lambda d: None,
        "910",
        "$.group_list[0].instance_list[1].devices: server '10.0.0.2' has 1 device, but '10.0.0.1' has 2. Use the same "
        "number on every server",
    ),
    (
        ONE_EACH,
        lambda d: instances(d)[1]["devices"][0].update(device_id="7"),
        "910",
        "$.group_list[0].instance_list: devices 0, 7 of server '10.0.0.1' are in both rings",
    ),
    (
        SUPER_PODS,
        lambda d: devices(d, 1).pop(),
        "A3",
        "$.super_pod_list[1]: super-pod '1' has 1 device, but '0' has 2. Use the same number in every super-pod",
    ),
]


def test_a_version_of_no_product_has_two_problems() -> None:
    _, problems = read_with_problems(json.dumps({**TWO_SERVERS, "version": "3.0"}), "910")
    assert [str(problem) for problem in problems] == [
        "$.version: is '3.0', but there is a server_list. Write '1.0' or '1.2'",
        "$.version: is '3.0', but 910 uses '1.0'. Run npu-shim ranktable convert --to 1.0",
    ]


@pytest.mark.parametrize("data, change, product, text", WARNINGS, ids=[w[3][:70] + w[2] for w in WARNINGS])
def test_warnings_do_not_prevent_reading(data: Any, change: Any, product: str, text: str) -> None:
    made = json.dumps(changed(data, change))
    table, problems = read_with_problems(made, product)
    assert table is not None and table == parse_table(made)
    assert [problem.severity for problem in problems] == [WARNING] and str(problems[0]).startswith(text), problems


@pytest.mark.parametrize(
    "ids, product",
    [
        ((0, 1, 2), "A2"),
        ((3, 4), "A2"),
        ((0, 1, 2), "A3"),
        ((14, 15), "A3"),
        ((3, 4), None),
        ((4, 5, 6, 7), "910"),
        ((2, 3), "910"),
        ((7,), "910"),
        (tuple(range(8)), "910"),
    ],
)
def test_each_product_has_its_own_rules(ids: Any, product: Any) -> None:
    assert read_with_problems(json.dumps(server(*ids)), product)[1] == ()
