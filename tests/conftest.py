"""Settings and fixtures of all tests, made before TensorFlow is imported."""

from __future__ import annotations

import gc
import os
import pathlib
import signal
import subprocess
import sys
from typing import Any, Callable, Iterator

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
    parser.addoption(
        "--not-the-first",
        action="store_true",
        help="of these not the first, but of tests that only one TensorFlow runs",
    )


def pytest_ignore_collect(collection_path: pathlib.Path, config: Any) -> bool | None:
    """Leave out the files without a test of the suite "smoke": importing all takes longer than those tests."""
    if not config.getoption("markexpr").startswith("smoke") or collection_path.suffix != ".py":
        return None
    return True if "smoke" not in collection_path.read_text(encoding="utf-8") else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Choose among the cases that the marks leave."""
    most, is_first_elsewhere = config.getoption("--few-cases"), config.getoption("--not-the-first")
    if most is None:
        return
    tests: dict[tuple[str, str], list[Any]] = {}
    for item in items:
        tests.setdefault((str(item.fspath), item.originalname or item.name), []).append(item)
    kept = {
        cases[place * (len(cases) - 1) // max(most - 1, 1)] if len(cases) > most else cases[place]
        for cases in tests.values()
        for place in range(min(most, len(cases)))
        if place or len(cases) == 1 or not is_first_elsewhere or cases[0].get_closest_marker("once")
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
def python() -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """python(folder, *arguments, **variables) -> the end of a Python there, with both outputs in one.

    It is forked from a process with TensorFlow for all tests, as ranks are, and so it sees a new Python.
    """
    from npu_shim.launching.fork_server import ForkServer
    from samples import training

    # pytest changes this variable from test to test, and a fork whose variables differ starts again as a new Python
    environ = {name: value for name, value in training.environment().items() if name != "PYTEST_CURRENT_TEST"}
    server = ForkServer(["-m", "npu_shim"], environ, starts_session=False)
    assert server.wait(lambda: False) is None

    def run(folder: pathlib.Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        folder.mkdir(exist_ok=True)
        log = folder.parent / f"{folder.name}.log"
        log.write_text("")
        code = server.fork("this process", arguments, str(log), {**environ, **variables}, str(folder)).finish(600)
        return subprocess.CompletedProcess(arguments, code, log.read_text())

    yield run
    server.close()


@pytest.fixture(scope="session")
def verify_command(tmp_path_factory: Any) -> Iterator[Any]:
    """verify_command(folder, *arguments, **variables) -> exit code, output and JSON of the command verify there."""
    from tests import verify_command

    with verify_command.sharing(tmp_path_factory.mktemp("first_run")) as run:
        yield run


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
