"""device(): its result, its reason, and the fallback policy."""

from __future__ import annotations

import sys
import types
import warnings

import pytest

import npu_shim
from npu_shim import _device


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for name in ("NPU_SHIM_FALLBACK", "RANK_ID", "RANK_SIZE"):
        monkeypatch.delenv(name, raising=False)
    _device._warn_once.cache_clear()
    monkeypatch.setitem(sys.modules, "npu_bridge", None)


@pytest.fixture
def vendor(monkeypatch, tmp_path):
    """card(): the vendor's package is there; with a card file too when it is called with True."""

    def make(card):
        for name in ("npu_bridge", "npu_bridge.estimator", "npu_bridge.estimator.npu_ops"):
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        if card:
            (tmp_path / "davinci0").touch()
        monkeypatch.setattr(_device, "DEVICE_FILES", str(tmp_path / "davinci[0-9]*"))

    return make


def test_without_the_vendors_package_the_device_is_the_cpu():
    found = npu_shim.device()
    assert (found.kind, found.is_npu) == ("cpu", False)
    assert "npu_bridge is not installed for" in found.reason and str(found) == f"cpu: {found.reason}"


def test_without_a_card_the_device_is_the_cpu(vendor):
    vendor(card=False)
    assert npu_shim.device().kind == "cpu" and "driver shows no card" in npu_shim.device().reason


def test_with_package_and_card_the_device_is_the_npu(vendor):
    vendor(card=True)
    assert npu_shim.device().kind == "npu" and "shows 1 card(s)" in npu_shim.device().reason
    assert _device.resolve().is_npu


def test_by_default_a_warning_is_shown_once():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        _device.resolve()
        _device.resolve()
    assert [w.category for w in told] == [RuntimeWarning]
    assert "npu_shim runs on the CPU" in str(told[0].message) and "NPU_SHIM_FALLBACK=silent" in str(told[0].message)


def test_silent_does_not_warn(monkeypatch):
    monkeypatch.setenv("NPU_SHIM_FALLBACK", "silent")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _device.resolve().kind == "cpu"


def test_error_forbids_the_cpu(monkeypatch):
    monkeypatch.setenv("NPU_SHIM_FALLBACK", "error")
    assert npu_shim.device().kind == "cpu"  # asking is always allowed
    with pytest.raises(RuntimeError, match="no NPU here .*forbids the CPU.*export NPU_SHIM_FALLBACK=warn"):
        _device.resolve()


def test_an_unknown_policy_is_refused(monkeypatch):
    monkeypatch.setenv("NPU_SHIM_FALLBACK", "maybe")
    with pytest.raises(ValueError, match="NPU_SHIM_FALLBACK='maybe' is not allowed"):
        npu_shim.device()
