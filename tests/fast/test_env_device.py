"""device(): its result, its reason, and the fallback policy."""

from __future__ import annotations

import sys
import types

import pytest

import npu_shim
from npu_shim._host import host_device


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for name in ("NPU_SHIM_FALLBACK", "RANK_ID", "RANK_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for cache in (host_device._warn_of_cpu_once, host_device._import_failure_text):
        cache.cache_clear()
    for package in ("npu_bridge", "npu_device"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(host_device, "tensorflow_version", lambda: "1.15.5")
    yield
    host_device._import_failure_text.cache_clear()


@pytest.fixture
def card(monkeypatch, tmp_path):
    """The driver shows a card."""
    (tmp_path / "davinci0").touch()
    monkeypatch.setattr(host_device, "DEVICE_FILES", str(tmp_path / "davinci[0-9]*"))


@pytest.fixture
def package(monkeypatch, tmp_path):
    """package(name, source) installs a package; without source it is imported already, with its op library."""

    def install(name, source=None):
        if source is None:
            for module in (name, f"{name}.estimator", f"{name}.estimator.npu_ops"):
                monkeypatch.setitem(sys.modules, module, types.ModuleType(module))
            return
        monkeypatch.delitem(sys.modules, name)
        (tmp_path / f"{name}.py").write_text(source)
        monkeypatch.syspath_prepend(str(tmp_path))

    return install


def test_without_a_card_the_device_is_the_cpu(package):
    package("npu_bridge")
    found = npu_shim.device()
    assert (found.kind, found.is_npu, found.cards) == ("cpu", False, ())
    assert "driver shows no card" in found.reason and str(found) == f"cpu: {found.reason}"


def test_with_package_and_card_the_device_is_the_npu(card, package):
    package("npu_bridge")
    found = npu_shim.device()
    assert found.kind == "npu" and "shows 1 card(s)" in found.reason
    assert "npu_bridge serves TensorFlow 1.15.5" in found.reason
    assert host_device.is_npu() and host_device.require_device().is_npu and not host_device.has_npu_device()


@pytest.mark.parametrize(
    "version, name, other", [("1.15.5", "npu_bridge", "npu_device"), ("2.6.5", "npu_device", "npu_bridge")]
)
def test_of_two_packages_the_one_for_this_tensorflow_serves(version, name, other, card, package, monkeypatch):
    monkeypatch.setattr(host_device, "tensorflow_version", lambda: version)
    package(name)
    package(other)
    found = npu_shim.device()
    assert found.package == name and f"{name} serves TensorFlow {version}" in found.reason
    assert f"{other} is installed too and not used" in found.reason
    assert ("in graph mode npu_device.compat.v1" in found.reason) == (name == "npu_device")
    assert host_device.has_npu_device() == (name == "npu_device")


def test_if_the_package_for_this_tensorflow_does_not_load_the_other_serves(card, package):
    package("npu_bridge", "raise ImportError('libascendcl.so: cannot open')")
    package("npu_device")
    assert npu_shim.device().package == "npu_device"


@pytest.mark.parametrize(
    "version, source, text",
    [
        ("1.15.5", None, "npu_bridge is not installed for .*Install CANN's TensorFlow plugin .* has npu_bridge,"),
        ("2.6.5", None, "npu_device is not installed for .*Install CANN's TensorFlow plugin .* has npu_device,"),
        ("2.15.1", None, "TensorFlow 2.15.1 has no vendor package: use TensorFlow 2.6 or 1.15"),
        (None, None, r"npu_bridge \(TensorFlow 1.15\) or npu_device \(TensorFlow 2.6\) is not installed"),
        (
            "1.15.5",
            "raise OSError('libascendcl.so: cannot open shared object file')",
            r"npu_bridge does not load \(OSError: libascendcl.so: cannot.*\). Source the set_env.sh",
        ),
        ("1.15.5", "raise AttributeError()", r"npu_bridge does not load \(AttributeError: no message\)"),
    ],
)
@pytest.mark.parametrize("policy", ["", "error"])
def test_a_card_that_no_package_uses_is_an_error(policy, version, source, text, card, package, monkeypatch):
    monkeypatch.setattr(host_device, "tensorflow_version", lambda: version)
    monkeypatch.setenv("NPU_SHIM_FALLBACK", policy)
    if source:
        package("npu_bridge", source)
    assert npu_shim.device().kind == "cpu"  # asking is always allowed
    for use in (host_device.require_device, host_device.is_npu, host_device.has_npu_device):
        with pytest.raises(RuntimeError, match="(?s)^The card is not used: the driver shows 1 card.*" + text) as raised:
            use()
        assert str(raised.value).endswith("To run on the CPU on purpose, export NPU_SHIM_FALLBACK=warn.")


@pytest.mark.parametrize("policy", ["warn", "silent"])
def test_a_card_may_stay_unused_on_purpose(policy, card, package, monkeypatch, capsys):
    package("npu_bridge", "raise ImportError('no library')")
    monkeypatch.setenv("NPU_SHIM_FALLBACK", policy)
    assert host_device.require_device().kind == "cpu" and not host_device.is_npu()
    shown = capsys.readouterr().err
    assert shown.count("\n") == (policy == "warn")
    assert policy == "silent" or "npu_bridge does not load (ImportError: no library); running on the CPU." in shown


def test_by_default_one_plain_line_is_shown_once(capsys):
    host_device.require_device()
    host_device.require_device()
    assert capsys.readouterr().err == (
        "npu_shim: no NPU here; running on the CPU. NPU_SHIM_FALLBACK=silent hides this line, =error forbids the CPU.\n"
    )


@pytest.mark.parametrize("rank, shown", [("0", 1), ("1", 0), ("3", 0)])
def test_one_rank_speaks_for_its_job(rank, shown, monkeypatch, capsys):
    monkeypatch.setenv("RANK_SIZE", "4")
    monkeypatch.setenv("RANK_ID", rank)
    host_device.require_device()
    assert capsys.readouterr().err.count("no NPU here") == shown


def test_silent_shows_nothing(monkeypatch, capsys):
    monkeypatch.setenv("NPU_SHIM_FALLBACK", "silent")
    assert host_device.require_device().kind == "cpu"
    assert capsys.readouterr().err == ""


def test_error_forbids_the_cpu(monkeypatch):
    monkeypatch.setenv("NPU_SHIM_FALLBACK", "error")
    assert npu_shim.device().kind == "cpu"  # asking is always allowed
    with pytest.raises(RuntimeError, match="no NPU here .*forbids the CPU.*export NPU_SHIM_FALLBACK=warn"):
        host_device.require_device()


def test_an_unknown_policy_is_refused(monkeypatch):
    monkeypatch.setenv("NPU_SHIM_FALLBACK", "maybe")
    with pytest.raises(ValueError, match="NPU_SHIM_FALLBACK='maybe' is not allowed"):
        npu_shim.device()


def test_horovod_does_not_start_beside_an_unused_card(card):
    from npu_shim.horovod.common.basics import HorovodBasics

    with pytest.raises(RuntimeError, match="The card is not used"):
        HorovodBasics().init()
