"""The variables that make TensorFlow keep the memory of tensors."""

from __future__ import annotations

import pytest

from npu_shim._host import allocator

CASES = {
    "by default it is kept": ({}, 24_000, {"TF_CPU_ALLOCATOR_USE_BFC": "true"}),
    "all of a large machine may be used": (
        {},
        500_000,
        {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "500000"},
    ),
    "a limit of the user holds": (
        {"TF_CPU_BFC_MEM_LIMIT_IN_MB": "1000"},
        500_000,
        {"TF_CPU_ALLOCATOR_USE_BFC": "true"},
    ),
    "it can be switched off": ({"NPU_SHIM_MEMORY": "returned"}, 500_000, {}),
    "what the user has chosen stays": ({"TF_CPU_ALLOCATOR_USE_BFC": "false"}, 500_000, {}),
}


@pytest.mark.parametrize("environ, memory_mb, wanted", CASES.values(), ids=list(CASES))
def test_variables(monkeypatch, environ, memory_mb, wanted):
    monkeypatch.setattr(allocator, "_machine_memory_mb", lambda: memory_mb)
    assert allocator.allocator_variables(environ) == wanted
    assert allocator.allocator_variables({**environ, **wanted}) == {}, "set once"


@pytest.mark.parametrize(
    "environ, version, kept",
    [
        ({}, "1.15.5", False),
        ({}, "2.6.5", False),
        ({}, "2.15.1", True),
        ({}, "2.21.0", True),
        ({"TF_CPU_ALLOCATOR_USE_BFC": "true"}, "1.15.5", True),
        ({"TF_CPU_ALLOCATOR_USE_BFC": "0"}, "2.15.1", False),
        ({"TF_ENABLE_ONEDNN_OPTS": "0"}, "2.15.1", False),
    ],
)
def test_tensorflow_keeps_memory(environ, version, kept):
    assert allocator.keeps_memory(environ, version) == kept


def test_the_memory_of_the_machine_is_known():
    assert 100 < allocator._machine_memory_mb() < 10**9
