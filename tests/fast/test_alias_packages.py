"""The packages npu_bridge, hccl, npu_device and horovod, served by npu_shim. Nothing here needs TensorFlow."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any, Callable

import pytest

pytestmark = pytest.mark.slow

Run = Callable[..., "subprocess.CompletedProcess[str]"]
PRINT_RANK = "from hccl.manage.api import get_rank_id\nprint(get_rank_id())\n"


@pytest.fixture
def run(tmp_path: pathlib.Path, repo_root: pathlib.Path) -> Run:
    """Return a function that runs Python in a folder of its own."""

    def python(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": str(repo_root), **variables}
        return subprocess.run([sys.executable, *arguments], cwd=str(tmp_path), env=env, capture_output=True, text=True)

    return python


def output(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the lines of a run that succeeded."""
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_module_has_one_object_under_both_names(run: Run) -> None:
    code = (
        "import npu_shim.alias, npu_bridge.estimator.npu.util, npu_shim.estimator.npu.util as own;"
        "import hccl.manage.api, npu_shim.hccl.manage.api as api;"
        "import npu_device.compat.v1.estimator.npu.util as graph_mode, npu_shim.hccl.split.api;"
        "print(npu_bridge.estimator.npu.util is own, hccl.manage.api is api, graph_mode is own, own.__spec__.name)"
    )
    assert output(run("-c", code)) == ["True True True npu_shim.estimator.npu.util"]


@pytest.mark.once_tf115
def test_a_star_import_of_npu_bridge_has_the_vendors_names_only(run: Run) -> None:
    code = "import npu_shim.alias\nfrom npu_bridge import *\nprint(*sorted(n for n in dir() if n[0] != '_'))"
    assert output(run("-c", code)) == ["estimator hccl hccl_ops npu_close npu_estimator npu_shim"]


def test_npu_bridge_alone_brings_the_modules_that_the_vendors_package_imports(run: Run) -> None:
    code = "import npu_shim.alias, npu_bridge\nprint(npu_bridge.estimator.npu.npu_config.__name__)"
    assert output(run("-c", code)) == ["npu_shim.estimator.npu.npu_config"]


@pytest.mark.parametrize(
    "name", ["npu_bridge.nowhere", "npu_bridge.cli", "npu_bridge.estimator.checks", "hccl.nowhere"]
)
def test_a_module_that_the_package_does_not_have_is_an_import_error(name: str, run: Run) -> None:
    done = run("-c", f"import npu_shim.alias, {name}")
    root = name.split(".")[0]
    assert f"No module named '{name}'. npu_shim serves {root}, but not this module." in done.stderr
    code = f"import npu_shim.alias, sys\ntry: import {name}\nexcept ImportError: print('{name}' in sys.modules)"
    assert output(run("-c", code)) == ["False"]


def test_an_installed_package_is_imported_and_named(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "npu_bridge").mkdir()
    (tmp_path / "npu_bridge" / "__init__.py").write_text("mine = 1\n")
    (tmp_path / "npu_bridge" / "npu_init.py").write_text("mine = 2\n")
    (tmp_path / "train.py").write_text(
        "import npu_bridge, npu_bridge.npu_init as init\nprint(npu_bridge.mine, init.mine)\n" + PRINT_RANK
    )
    done = run("-m", "npu_shim", "run", "--alias", "train.py")
    assert output(done) == ["1 2", "0"]
    assert done.stderr.count("The alias does not serve npu_bridge: it is installed in ") == 1
    assert str(tmp_path / "npu_bridge" / "__init__.py") in done.stderr


@pytest.mark.parametrize("before", ["", "import npu_bridge, npu_device; "])
def test_the_device_is_never_found_in_an_alias(before: str, run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "davinci0").touch()
    code = (
        f"import npu_shim.alias; {before}import npu_shim; from npu_shim._host import host_device;"
        f"host_device.DEVICE_FILES = {str(tmp_path / 'davinci*')!r}; print(npu_shim.device())"
    )
    (line,) = output(run("-c", code))
    assert line.startswith("cpu: the driver shows 1 card(s)") and " is not installed for " in line


def test_the_vendors_module_is_never_an_alias(run: Run) -> None:
    code = (
        "import npu_shim.alias; from npu_shim._host import host_device\n"
        "try: host_device.import_vendor_module('hccl.manage.api')\nexcept ModuleNotFoundError as error: print(error)"
    )
    assert output(run("-c", code)) == [
        "No module named 'hccl'. Install the vendor's package; an alias of npu_shim cannot drive the NPU."
    ]


CHILDREN = """
import multiprocessing, subprocess, sys

def rank(_):
    from hccl.manage.api import get_rank_id
    return get_rank_id()

if __name__ == '__main__':
    import npu_bridge.hccl
    for method in ('fork', 'spawn', 'forkserver'):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, pool.map(rank, [1]))
"""


@pytest.mark.once
def test_run_serves_the_script_unconverted_and_its_child_processes(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(CHILDREN)
    done = run("-m", "npu_shim", "run", "--alias", "train.py")
    assert output(done) == ["fork [0]", "spawn [0]", "forkserver [0]"]
    assert "npu-shim run: " not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.once
def test_the_variable_serves_converted_scripts_too(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(PRINT_RANK)
    done = run("-m", "npu_shim", "run", "train.py", NPU_SHIM_ALIAS="1")
    assert output(done) == ["0"] and "npu-shim run: nothing to rewrite in 1 file" in done.stderr
    assert "ModuleNotFoundError" in run("-m", "npu_shim", "run", "train.py", NPU_SHIM_ALIAS="0").stderr


@pytest.mark.parametrize("verb", [("run",), ("launch", "--ranks", "2")])
def test_an_unknown_value_of_the_variable_is_an_error(verb: Any, run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(PRINT_RANK)
    done = run("-m", "npu_shim", *verb, "train.py", NPU_SHIM_ALIAS="yes")
    assert done.returncode == 2
    assert "NPU_SHIM_ALIAS='yes' is not allowed: it must be one of 0, 1" in done.stderr


def test_the_ranks_of_mpirun_are_exported(run: Run, tmp_path: pathlib.Path) -> None:
    code = (
        "import npu_shim.alias, os; from hccl.manage.api import get_rank_id, get_rank_size, get_local_rank_id;"
        "names = 'RANK_ID RANK_SIZE DEVICE_ID JOB_ID'.split();"
        "print(get_rank_id(), get_rank_size(), get_local_rank_id(), *[os.environ[name] for name in names])"
    )
    started = dict(rank="1", size="2", local_rank="1", local_size="2")
    variables = {f"OMPI_COMM_WORLD_{name.upper()}": value for name, value in started.items()}
    assert output(run("-c", code, PMIX_NAMESPACE="prterun-host-42@1", **variables)) == ["1 2 1 1 2 1 prterun-host-42-1"]


@pytest.mark.once_tf115
def test_launched_ranks_are_served(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(PRINT_RANK)
    (tmp_path / "later.py").write_text("print('as a module')\n" + PRINT_RANK)
    launch = ("-m", "npu_shim", "launch", "--ranks", "2", "--log-dir", "logs")
    run(*launch, "train.py", NPU_SHIM_ALIAS="1")
    run(*launch, "-m", "later", NPU_SHIM_ALIAS="1")
    for rank in (0, 1):
        lines = (tmp_path / "logs" / f"rank_{rank}.log").read_text().splitlines()
        assert [line for line in lines if not line.startswith("== ")] == [str(rank), "as a module", str(rank)]
