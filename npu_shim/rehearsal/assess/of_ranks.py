"""The assessments of the ranks of a job as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject


def joined(ranks: Sequence[JsonObject]) -> JsonObject:
    """Return the assessment of rank 0 with the number of ranks.

    A problem is added for each rank whose collectives are not those of rank 0, because the job would then never end.
    """
    assessment = {**ranks[0], "ranks": len(ranks), "problems": list(ranks[0]["problems"])}
    for rank, other in enumerate(ranks):
        for ours, theirs in zip(ranks[0]["graphs"], other["graphs"]):
            if ours["collectives"] != theirs["collectives"]:
                why = f"on rank {rank} are not those of rank 0: {_listed(theirs)} in place of {_listed(ours)}"
                assessment["problems"].append({"graph": ours["name"], "what": "collectives", "why": why, "lines": []})
    return assessment


def _listed(graph: JsonObject) -> str:
    return ", ".join(f"{row['count']} {row['op']} of {row['bytes']} bytes" for row in graph["collectives"]) or "none"
