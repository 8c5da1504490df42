"""The benchmark of many ranks runs, and its model follows the formulas; no figure decides."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from benchmarks import scale

LINK = scale.Link(1e-5, 1e9)
HOST = scale.Link(2e-5, 4e9)


def test_few_ranks_are_measured_and_many_calculated() -> None:
    done = subprocess.run([sys.executable, scale.__file__, "--quick"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line[:1] == "|"]
    assert [row[4:] for row in rows[2:4]] == [["0", "0"], ["2", "340008"]]
    ranks = [str(number) for number in scale.MODEL_RANKS]
    assert [row[1] for row in rows if row[0].startswith("ResNet-50")] == 2 * ranks


def test_the_forms_of_the_model() -> None:
    assert scale.ring(LINK, 2, 1e6) == pytest.approx(2 * (1e-5 + 0.5e-3))
    assert scale.tree(LINK, 8, 1e6) == pytest.approx(6 * (1e-5 + 1e-3))
    assert scale.hierarchical(LINK, HOST, 8, 1e6) == pytest.approx(2e-5 + 0.25e-3)  # one host: no link
    assert scale.hierarchical(LINK, HOST, 1024, 0) == pytest.approx(2e-5 + 254 * 1e-5)


def test_the_fit_finds_latency_and_bandwidth() -> None:
    sizes = [1 << power for power in range(10, 25, 2)]
    found = scale.link_of_two({size: scale.ring(LINK, 2, size) for size in sizes})
    assert found.latency_s == pytest.approx(1e-5) and found.bandwidth == pytest.approx(1e9)
    assert scale.fit({1024: 2e-4, 4096: 1e-4}).bandwidth == math.inf


def test_another_network_is_calculated() -> None:
    slow, fast = (scale.model(scale.Link(1e-5, speed), HOST, [("a", 2, 1e8)]) for speed in (1e9, 25e9))
    assert [row["ranks"] for row in slow] == list(scale.MODEL_RANKS)
    assert all(one["ring_s"] > other["ring_s"] for one, other in zip(slow, fast))
