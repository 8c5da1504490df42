"""Settings and fixtures of all tests, made before TensorFlow is imported."""

from __future__ import annotations

import gc
import os
import pathlib
import signal
import sys
from typing import Any, Iterator

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
_CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as shells start what runs in the background, with all its children
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: Any) -> None:
    parser.addoption(
        "--few-cases", type=int, metavar="N", help="run N cases of each test with more, from the first to the last"
    )


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    most = config.getoption("--few-cases")
    if most is None:
        return
    tests: dict[tuple[str, str], list[Any]] = {}
    for item in items:
        tests.setdefault((str(item.fspath), item.originalname or item.name), []).append(item)
    kept = {
        cases[place * (len(cases) - 1) // (most - 1)] if len(cases) > most else cases[place]
        for cases in tests.values()
        for place in range(min(most, len(cases)))
    }
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_collection_finish() -> None:
    if "NPU_SHIM_TEST_COLLECTIONS" in os.environ:  # tests/run.sh sets it
        gc.collect()
        gc.freeze()  # later collections look through the objects of the tests alone


@pytest.fixture(scope="session", autouse=True)
def cache_home(tmp_path_factory: Any) -> Iterator[pathlib.Path]:
    """Give programs empty folders for their settings and caches, not those of the user who runs the tests."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    yield folder
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture(scope="session")
def repo_root() -> pathlib.Path:
    """The checkout under test."""
    return pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A Chromium, with an empty profile."""
    from playwright.sync_api import sync_playwright  # only the environment reports has it

    chromium = pathlib.Path(sys.prefix) / "bin" / "chromium"  # made by tests/envs/reports.sh
    if not chromium.exists():
        pytest.fail(f'no {chromium}; "bash tests/run.sh --env reports" makes what these tests need')
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(chromium), args=_CHROMIUM_FLAGS)
        yield started
        started.close()
