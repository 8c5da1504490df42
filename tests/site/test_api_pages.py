"""The pages of the API reference, made from the sources."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def api_pages(repo_root: pathlib.Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("api_pages", str(repo_root / "docs" / "api_pages.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["api_pages"] = module
    spec.loader.exec_module(module)
    return module


def test_names_are_found_where_they_are_defined(api_pages: ModuleType) -> None:
    sources = api_pages.Sources()
    for module, name, home in (
        ("npu_shim", "session_config", "npu_shim.config.session"),  # loaded on first use
        ("npu_shim.hccl.manage.api", "get_rank_id", "npu_shim.distributed.ranks"),  # at the vendor's path
        ("npu_shim.npu_init", "NPUEstimator", "npu_shim.estimator.npu_estimator"),  # through two imports
        ("npu_shim.npu_device.distribute", "shard_batches", "npu_shim.npu_device.distribute.global_batches"),
    ):
        assert sources.find(module, name).module == home
    assert sources.find("npu_shim", "data") is None  # a module
    assert "tensorflow" not in sys.modules


def test_a_page_has_signature_arguments_and_other_names(api_pages: ModuleType) -> None:
    page = api_pages.pages()["npu_shim.npu_init.md"]
    assert "## npu_config_proto\n\n```python\nnpu_config_proto(" in page
    assert "* `loss_scale`: float of at least 1.\n" in page
    assert "Modules and values: " in page and "`rewriter_config_pb2`" in page


def test_a_function_of_graph_mode_is_described_by_the_function_that_it_calls(api_pages: ModuleType) -> None:
    page = api_pages.pages()["npu_shim.estimator.npu_ops.md"]
    for name in ("LARSV2", "adam_apply_one_assign", "basic_lstm_cell", "k_means_centroids"):
        section = page.split(f"## {name}\n")[1].split("\n## ")[0]
        assert section.startswith(f"\n```python\n{name}(") and "raises `RuntimeError` in eager mode" in section
    assert "* `hyperpara`: the trust coefficient.\n" in page


def test_a_docstring_becomes_markdown(api_pages: ModuleType) -> None:
    text = (
        "Add ``x``::\n\n    add(1)\n\n    add(2)\n\nArgs:\n    x: a number,\n        or None.\nReturns:\n    The sum."
    )
    assert api_pages.docstring_markdown(text) == (
        "Add `x`:\n\n```python\nadd(1)\n\nadd(2)\n```\n\n\n**Args**\n\n* `x`: a number,\n    or None.\n\n**Returns**\n\n"
        "* The sum.\n"
    )
