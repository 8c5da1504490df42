"""Figures equal those of the vendor's own comparison, and what it has no figure for is right."""

from __future__ import annotations

import json

import numpy as np
import pytest

from npu_shim.dumps import figures, limits
from tests.dumps.make_vendor_figures import FILE
from tests.dumps.vendor_cases import pairs

_NAMES = {
    "CosineSimilarity": "cosine",
    "MaxAbsoluteError": "max_absolute",
    "AccumulatedRelativeError": "accumulated_relative",
    "RelativeEuclideanDistance": "relative_euclidean",
    "KullbackLeiblerDivergence": "divergence",
    "MeanAbsoluteError": "mean_absolute",
    "RootMeanSquareError": "root_mean_square",
    "MaxRelativeError": "max_relative",
    "MeanRelativeError": "mean_relative",
}
_ROUNDING = 2e-7  # of float32, in which the vendor adds; the divergence is a sum of terms near 1


@pytest.mark.parametrize("name", pairs())
def test_figures_equal_those_of_the_vendor(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vendor = json.loads(FILE.read_text(encoding="utf-8"))[name]
    for block in (1 << 20, 7):
        monkeypatch.setattr(figures, "_BLOCK", block)
        ours = figures.difference_figures_of_tensors(*pairs()[name])
        for title, field in _NAMES.items():
            wanted = float(vendor[title])
            rounding = _ROUNDING if field == "divergence" else 0.0
            assert getattr(ours, field) == pytest.approx(wanted, rel=1e-6, abs=rounding, nan_ok=True), (title, block)
        assert "({:.3f};{:.3f}),({:.3f};{:.3f})".format(*ours.deviations).replace("-0.000", "0.000") == vendor[
            "StandardDeviation"
        ].replace("-0.000", "0.000")


def test_inf_and_nan_are_counted_and_left_out() -> None:
    device = np.array([1.0, np.inf, np.nan, 4.0, np.nan], np.float16)
    reference = np.array([1.0, 7e4, np.nan, 2.0, 5.0], np.float32)
    found = figures.difference_figures_of_tensors(device, reference)
    assert (found.not_finite, found.not_finite_reference, found.only_here) == (3, 1, 2)
    assert (found.max_absolute, found.largest, found.largest_reference) == (2.0, 4.0, 7e4)
    assert found.different == pytest.approx(0.6)
    assert limits.departure_cause(device, reference, found, "float16").startswith("float16 overflow: 1 elements")


def test_complex_numbers_are_pairs_of_numbers() -> None:
    found = figures.difference_figures_of_tensors(np.array([1 + 2j, 3j]), np.array([1 + 2j, 4j]))
    assert (found.max_absolute, found.different) == (1.0, 0.25)


@pytest.mark.parametrize(
    ("kind", "share", "departs"),
    [
        ("float16", 0.01, False),
        ("float32", 0.01, False),
        ("float32", 0.03, True),
        ("bfloat16", 0.03, False),
        ("bfloat16", 0.3, True),
        ("float64", 1e-4, True),
    ],
)
def test_limits_follow_the_type(kind: str, share: float, departs: bool) -> None:
    reference = np.random.RandomState(0).normal(size=1000)
    found = figures.difference_figures_of_tensors(reference * (1 + share), reference)
    assert bool(limits.departure_reasons(found, kind, None, 1.0)) == departs
    assert not limits.departure_reasons(found, kind, None, 1e4)
    assert not limits.departure_reasons(found, kind, 0.4, 1.0)  # a band of the reference


def test_whole_numbers_depart_when_one_in_a_hundred_differs() -> None:
    reference = np.arange(1000)
    for changed, departs in ((10, False), (11, True)):
        device = reference.copy()
        device[:changed] += 1
        assert (
            bool(limits.departure_reasons(figures.difference_figures_of_tensors(device, reference), "int64", None, 1.0))
            == departs
        )
