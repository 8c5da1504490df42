"""The vendor's partition: the nodes of the device, and the clusters into which the others cut a step.

The rules are those of the adapter's pass: a node is a candidate if its operator and all those of the functions it runs
are on the list; strings, resources and references that a host node makes or takes keep their other end on the host;
a constant goes with a consumer. Neighbouring candidates join unless that makes a cycle through a host node.
"""

from __future__ import annotations

import collections
from typing import Iterator, NamedTuple, Sequence

from npu_shim._tensorflow import tf_graph
from npu_shim.rehearsal.assess.flat import Node
from npu_shim.rehearsal.assess.linked_groups import representatives
from npu_shim.rehearsal.assess.operators import HOST, INPUT, Lists

ON_HOST_ANYWAY = frozenset({"Placeholder", "PlaceholderWithDefault", "NoOp", "Const"})
_BOUND = frozenset({"string", "resource", "variant"})


class Partition(NamedTuple):
    """The result.

    Attributes:
        host: indices of the nodes of the step that stay on the host, without the input pipeline.
        pulled: those of them that would run on the device if their neighbours did.
        clusters: the sizes of the device clusters, the largest first.
        loops: names of loops and branches with an operator that the device does not run.
        cut: nodes outside the largest cluster: without mixed compilation they run on the host, too.
    """

    host: list[int]
    pulled: list[int]
    clusters: list[int]
    loops: list[str]
    cut: int


def partition_nodes(
    nodes: Sequence[Node], lists: Lists, mixed: bool = False, iterations_per_loop: int = 1
) -> Partition:
    """Partition the nodes of a step.

    Args:
        nodes: of the step.
        lists: the operators of the device.
        mixed: True for mix_compile_mode, in which gray operators stay on the host.
        iterations_per_loop: 1 if strings may enter and leave the device.
    """
    owner = _outermost_control_flow(nodes)
    bad_loops = sorted(
        {
            nodes[owner[i]].name
            for i, node in enumerate(nodes)
            if owner[i] != i and _is_device_node(node, lists, mixed) is False
        }
    )
    outside = set(bad_loops)
    candidate = {
        i: owner[i] == i and node.name not in outside and _is_device_node(node, lists, mixed) is not False
        for i, node in enumerate(nodes)
    }
    uses: dict[int, list[tuple[int, str]]] = collections.defaultdict(list)
    for i, node in enumerate(nodes):
        for source, output in node.inputs:
            uses[owner[source]].append((owner[i], _output_type(nodes[source], output)))
    pulled = _move_shared_to_host(nodes, owner, candidate, uses, iterations_per_loop)
    top = [i for i in range(len(nodes)) if owner[i] == i]
    host = [
        i
        for i in top
        if not candidate[i] and nodes[i].op not in ON_HOST_ANYWAY and lists.device_status(nodes[i].op) != INPUT
    ]
    clusters = _cluster_sizes(nodes, owner, {i for i in top if candidate[i] and nodes[i].op not in ON_HOST_ANYWAY})
    return Partition(host, [i for i in host if i in pulled], clusters, bad_loops, sum(clusters[1:]))


def _is_device_node(node: Node, lists: Lists, mixed: bool) -> bool | None:
    """Return True for a node of the device, False for one of the host, None for a value that is fed."""
    if node.op in ON_HOST_ANYWAY:
        return None
    return lists.device_status(node.op) not in (HOST, INPUT) and not (mixed and node.op in lists.gray)


def _output_type(node: Node, output: int) -> str:
    return "reference" if node.references[output : output + 1] == [True] else node.dtypes[output]


def _outermost_control_flow(nodes: Sequence[Node]) -> list[int]:
    """Return for each node the outermost loop or branch around it, or the node itself."""
    index = {node.name: i for i, node in enumerate(nodes)}
    owners = []
    for i, node in enumerate(nodes):
        while node.inside and node.inside in index:
            i = index[node.inside]
            node = nodes[i]
        owners.append(i)
    return owners


def _move_shared_to_host(
    nodes: Sequence[Node],
    owner: Sequence[int],
    candidate: dict[int, bool],
    uses: dict[int, list[tuple[int, str]]],
    loop: int,
) -> set[int]:
    """Take nodes from the device that share a string, resource or reference with a node of the host."""
    pulled: set[int] = set()
    stack = [i for i, node in enumerate(nodes) if owner[i] == i and not candidate[i] and node.op not in ON_HOST_ANYWAY]
    makers = {i: [(owner[s], _output_type(nodes[s], o)) for s, o in node.inputs] for i, node in enumerate(nodes)}
    while stack:
        i = stack.pop()
        for other, kind in uses[i] + makers[i]:
            tied = kind == "reference" or (kind in _BOUND and not (kind == "string" and loop == 1))
            if tied and candidate.get(other) and nodes[other].op not in ON_HOST_ANYWAY and nodes[other].op != "Assert":
                candidate[other] = False
                pulled.add(other)
                stack.append(other)
    return pulled


def _cluster_sizes(nodes: Sequence[Node], owner: Sequence[int], device: set[int]) -> list[int]:
    """Return the sizes of the clusters of device nodes.

    Nodes with the same number of host stretches before them cannot be on both ends of a path through the host, so
    neighbours of one such level join. Clusters of neighbouring levels then join where no cycle arises.
    """
    before: dict[int, list[int]] = collections.defaultdict(list)
    for i, node in enumerate(nodes):
        if node.op == "NextIteration":
            continue
        for source in [source for source, _ in node.inputs] + node.controls:
            if (
                owner[source] != owner[i]
                and nodes[source].op not in ON_HOST_ANYWAY
                and nodes[source].op != "NextIteration"
            ):
                before[owner[i]].append(owner[source])
    order = _topological_order(set(owner), before)
    level: dict[int, int] = {}
    for i in order:
        on_device = i in device
        level[i] = max(
            (level[s] + (1 if on_device and s not in device else 0) for s in before[i] if s in level), default=0
        )
    links = ((s, i) for i in device for s in before[i] if s in device and level[s] == level[i])
    joined = representatives(device, links)
    groups = {i: joined.get(i, i) for i in order}
    _join_clusters(groups, before, device)
    _merge_unconnected_clusters(groups, before, device)
    return sorted(collections.Counter(groups[i] for i in device).values(), reverse=True)


def _topological_order(all_nodes: set[int], before: dict[int, list[int]]) -> list[int]:
    left = {i: len(set(before[i])) for i in all_nodes}
    after: dict[int, list[int]] = collections.defaultdict(list)
    for i in all_nodes:
        for source in set(before[i]):
            after[source].append(i)
    ready = collections.deque(sorted(i for i, number in left.items() if not number))
    order = []
    while ready:
        i = ready.popleft()
        order.append(i)
        for other in after[i]:
            left[other] -= 1
            if not left[other]:
                ready.append(other)
    return order


def _join_clusters(groups: dict[int, int], before: dict[int, list[int]], device: set[int]) -> None:
    """Join clusters along edges between them, as long as there is no other path from one to the other."""
    changed = True
    while changed:
        changed = False
        after = _successor_groups(groups, before)
        edges = {
            (groups[source], groups[i])
            for source, i in _edges_between_groups(groups, before)
            if source in device and i in device
        }
        for first, second in sorted(edges):
            if not _has_longer_path(first, second, after):
                for i, group in groups.items():
                    if group == second:
                        groups[i] = first
                changed = True
                break


def _merge_unconnected_clusters(groups: dict[int, int], before: dict[int, list[int]], device: set[int]) -> None:
    """Merge clusters into the largest one if no path leads from one to the other, as the adapter's pass does."""
    after = _successor_groups(groups, before)
    sizes = collections.Counter(groups[i] for i in device)
    reach = {group: tf_graph.reachable_nodes(after[group], lambda other: after.get(other, ())) for group in sizes}
    merged: list[int] = []
    for group, _ in sizes.most_common():
        if all(group not in reach[other] and other not in reach[group] for other in merged):
            merged.append(group)
    for i in device:
        if groups[i] in merged:
            groups[i] = merged[0]


def _edges_between_groups(groups: dict[int, int], before: dict[int, list[int]]) -> Iterator[tuple[int, int]]:
    """Yield the edges between groups, as pairs of nodes."""
    for i, sources in before.items():
        for source in sources:
            if source in groups and i in groups and groups[source] != groups[i]:
                yield source, i


def _successor_groups(groups: dict[int, int], before: dict[int, list[int]]) -> dict[int, set[int]]:
    """Return the groups to which edges lead from each group."""
    after: dict[int, set[int]] = collections.defaultdict(set)
    for source, i in _edges_between_groups(groups, before):
        after[groups[source]].add(groups[i])
    return after


def _has_longer_path(first: int, second: int, after: dict[int, set[int]]) -> bool:
    """Return True if a path of two edges or more leads from one group to another."""
    stack, seen = [other for other in after[first] if other != second], set()
    while stack:
        group = stack.pop()
        if group == second:
            return True
        if group not in seen:
            seen.add(group)
            stack += after[group]
    return False
