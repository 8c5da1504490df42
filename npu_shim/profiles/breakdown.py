"""The time of a step: what it waits for, by phase. A moment belongs to the first category that is busy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npu_shim.profiles import kinds
from npu_shim.profiles.coverage import filled, union
from npu_shim.profiles.profile import Device
from npu_shim.profiles.steps import SLOW

GAPS = "launch gaps"
WAITS = (*kinds.CATEGORIES, GAPS)


class Breakdown(NamedTuple):
    """The steps of a device in nanoseconds.

    Attributes:
        length: of each step.
        phases: a row for each step with its data phase, forward and backward pass, and gradient refresh.
        waits: for each of WAITS such rows. Idle time before the forward pass is the host's, later it is a launch gap.
        busy: the time of each step in which any op runs.
    """

    length: np.ndarray
    phases: np.ndarray
    waits: dict[str, np.ndarray]
    busy: np.ndarray

    def slow(self) -> np.ndarray:
        """Return True for each step that takes several times as long as the median."""
        return self.length > SLOW * np.median(self.length)


def breakdown(device: Device) -> Breakdown:
    """Return the breakdown of the steps of a device."""
    edges = device.steps.edges
    phases = np.diff(edges, axis=1)
    rank = np.array([kinds.CATEGORIES.index(each) for each in device.category], np.int8)[device.code]
    waits, before = {}, np.zeros(phases.shape, np.int64)
    for place, category in enumerate(kinds.CATEGORIES):
        waits[category] = np.zeros(phases.shape, np.int64)
        if (rank == place).any():
            until = filled(union(device.start, device.end, rank <= place), edges)
            waits[category], before = until - before, until
    idle = phases - before
    waits[GAPS] = idle.copy()
    waits[GAPS][:, 0] = 0
    waits[kinds.HOST][:, 0] += idle[:, 0]
    return Breakdown(edges[:, -1] - edges[:, 0], phases, waits, before.sum(axis=1))


def only(device: Device, found: Breakdown, wanted: np.ndarray) -> np.ndarray:
    """Return the time of each step in which wanted ops run and no others.

    Args:
        device: the device.
        found: its breakdown.
        wanted: True for each signature that is.
    """
    ends = device.steps.edges[:, [0, -1]]
    return found.busy - filled(union(device.start, device.end, ~wanted[device.code]), ends)[:, 0]


def step_of(device: Device) -> np.ndarray:
    """Return the step in which each run starts, -1 for none."""
    edges = device.steps.edges
    place = np.searchsorted(edges[:, 0], device.start, "right").astype(np.int32)
    place -= 1
    place[device.start >= edges[place, -1]] = -1
    return place
