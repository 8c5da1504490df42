"""Checks of the net layers of version 2.0, as HCCL of the Ascend 950 makes them. The CPU accepts every value."""

from __future__ import annotations

import difflib
import ipaddress
import re
from typing import Iterator

from npu_shim.distributed.ranktable.fields import DevicePath, repeated_key_paths
from npu_shim.distributed.ranktable.model import NetAddress, NetLayer, Problem, count_text, extra_value, warning_problem

TOPOLOGY_FILE = "TOPO_FILE_DESC"
NET_TYPES = (TOPOLOGY_FILE, "CLOS")
EID, IPV4, IPV6 = "EID", "IPV4", "IPV6"
ADDRESS_KINDS = (EID, IPV4, IPV6)
_EID = re.compile(r"^[0-9a-fA-F]{32}$")
_MAX_ID, _MAX_LAYER, _MAX_LAYERS, _MAX_ADDRESSES, _MAX_PORTS = 64, 7, 8, 24, 16
_MAX_NAME, _MAX_PORT_NAME, _MAX_TCP_PORT = 1024, 32, 65535


def net_layer_problems(devices: list[DevicePath]) -> Iterator[Problem]:
    """Yield the values that HCCL refuses, and those that contradict each other.

    Args:
        devices: those of a table of version 2.0.
    """
    for place in devices:
        yield from _problems_of_device(place)
        before = None
        for path, layer in _net_layers_with_paths([place]):
            yield from _problems_of_layer(layer, before, path)
            for number, address in enumerate(layer.addresses):
                yield from _problems_of_address(address, f"{path}.rank_addr_list[{number}]")
            before = layer
    yield from _repeated_local_ids(devices)
    yield from _unequal_address_counts(devices)
    yield from _repeated_eids(devices)


def _problems_of_device(place: DevicePath) -> Iterator[Problem]:
    device, path = place.device, place.path
    for key, value in (("device_id", device.device_id), ("local_id", device.local_id or 0)):
        if value > _MAX_ID:
            yield warning_problem(f"{path}.{key}", f"is {value}", f"Write 0 to {_MAX_ID}")
    for key in ("device_port", "host_port"):
        port = extra_value(device.extras, key)
        if port is not None and not (isinstance(port, int) and 1 <= port <= _MAX_TCP_PORT):
            yield warning_problem(f"{path}.{key}", f"is {port!r}", f"Write a number from 1 to {_MAX_TCP_PORT}")
    if len(device.layers) > _MAX_LAYERS:
        yield warning_problem(f"{path}.level_list", f"has {len(device.layers)} layers", f"Write at most {_MAX_LAYERS}")


def _repeated_local_ids(devices: list[DevicePath]) -> Iterator[Problem]:
    """Check that each device of an instance of layer 0 has its own local_id; several servers may share an instance."""
    keys = {f"{of.path}.local_id": (of.device.layers[0].instance, of.device.local_id) for of in devices}
    for path, first in repeated_key_paths((key, path) for path, key in keys.items()):
        instance, local_id = keys[path]
        text = f"local_id {local_id} of {instance!r} is given twice, first at {first}"
        yield warning_problem(path, text, "Write the number that the device has in the topology file")


def _unequal_address_counts(devices: list[DevicePath]) -> Iterator[Problem]:
    """Check that the devices of an instance have the same number of addresses in it."""
    first: dict[tuple[int, str], tuple[int, str]] = {}
    for path, layer in _net_layers_with_paths(devices):
        size = len(layer.addresses)
        wanted, other = first.setdefault((layer.number, layer.instance), (size, path))
        if size != wanted:
            text = (
                f"has {count_text(size, 'address', 'addresses')}, but {wanted} in {other} with the same net_instance_id"
            )
            yield warning_problem(f"{path}.rank_addr_list", text, "Give each rank of an instance the same number")


def _repeated_eids(devices: list[DevicePath]) -> Iterator[Problem]:
    eids = {
        f"{path}.rank_addr_list[{number}].addr": address.address
        for path, layer in _net_layers_with_paths(devices)
        for number, address in enumerate(layer.addresses)
        if address.kind == EID
    }
    for path, first in repeated_key_paths((eid, path) for path, eid in eids.items()):
        text = f"{eids[path]!r} is given twice, first at {first}"
        yield warning_problem(path, text, "Copy the EIDs of each device from hccn_tool")


def _net_layers_with_paths(devices: list[DevicePath]) -> Iterator[tuple[str, NetLayer]]:
    """Yield the layers of devices, each with its JSON path."""
    for place in devices:
        for at, layer in enumerate(place.device.layers):
            yield f"{place.path}.level_list[{at}]", layer


def _problems_of_layer(layer: NetLayer, before: NetLayer | None, path: str) -> Iterator[Problem]:
    number = layer.number
    if number > _MAX_LAYER:
        yield warning_problem(f"{path}.net_layer", f"is {number}", f"Write 0 to {_MAX_LAYER}")
    if before is not None and number <= before.number:
        yield warning_problem(
            f"{path}.net_layer", f"is {number}, after {before.number}", "List the layers in ascending order"
        )
    if len(layer.instance) > _MAX_NAME:
        text = f"has {len(layer.instance)} characters"
        yield warning_problem(f"{path}.net_instance_id", text, f"Shorten it to {_MAX_NAME}")
    allowed = NET_TYPES if number else NET_TYPES[:1]
    if layer.net_type not in allowed:
        text = f"is {layer.net_type!r}{_near_value_text(layer.net_type, allowed)}" if layer.net_type else "is missing"
        yield warning_problem(f"{path}.net_type", text, f"Write {' or '.join(map(repr, allowed))} in layer {number}")
    if len(layer.addresses) > _MAX_ADDRESSES:
        text = f"has {len(layer.addresses)} addresses"
        yield warning_problem(f"{path}.rank_addr_list", text, f"Write at most {_MAX_ADDRESSES}")


def _problems_of_address(address: NetAddress, path: str) -> Iterator[Problem]:
    if address.kind not in ADDRESS_KINDS:
        text = f"is {address.kind!r}{_near_value_text(address.kind.upper(), ADDRESS_KINDS)}"
        yield warning_problem(f"{path}.addr_type", text, f"Write one of {', '.join(map(repr, ADDRESS_KINDS))}")
    elif not _is_valid_address(address):
        form = "32 hexadecimal digits" if address.kind == EID else f"an {address.kind[:2]}v{address.kind[-1]} address"
        yield warning_problem(
            f"{path}.addr", f"{address.address!r} is not {form}", f"Correct it, or addr_type {address.kind!r}"
        )
    if not 1 <= len(set(address.ports)) <= _MAX_PORTS:
        yield warning_problem(f"{path}.ports", f"has {len(set(address.ports))} ports", f"Write 1 to {_MAX_PORTS}")
    for port in address.ports:
        if not 1 <= len(port) <= _MAX_PORT_NAME:
            text = f"{port[:40]!r} has {len(port)} characters"
            yield warning_problem(f"{path}.ports", text, 'Write DIE/PORT, such as "0/4"')
    plane = extra_value(address.extras, "plane_id")
    if plane is not None and not isinstance(plane, str):
        yield warning_problem(f"{path}.plane_id", f"is {plane!r}", 'Write a string, such as "0"')


def _is_valid_address(address: NetAddress) -> bool:
    if address.kind == EID:
        return _EID.match(address.address) is not None
    try:
        return ipaddress.ip_address(address.address).version == int(address.kind[-1])
    except ValueError:
        return False


def _near_value_text(value: str, allowed: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(value, allowed, 1, 0.6)
    return f", which may mean {near[0]!r}" if near else ""
