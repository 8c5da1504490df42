"""npu_shim and each of its extras leave TensorFlow, NumPy and protobuf as they are.

They are installed into copies of the environments plain_* of tests/envs, which have what users have beside TensorFlow.
The copies are hard links: pip replaces files and does not write to them.
"""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import subprocess
import sys

import pytest

pytestmark = pytest.mark.nightly

USES = {  # what works afterwards
    "": "import npu_shim.npu_init",
    "[mpi]": "import mpi4py",
    "[onnx]": "import onnx.checker, onnxruntime, tf2onnx.tfonnx, tf2onnx.optimizer",
    "[profile]": "import pyarrow.compute, pyarrow.csv; pyarrow.array([1.0]).to_numpy()",
    "[dev]": "import pytest",
}
REFUSED = {
    ("plain_tf115", "[mpi]"): "libopenmpi-dev"
}  # no wheel of mpi4py for Python 3.7: it names the MPI that it needs
KEPT = ("tensorflow", "tf-nightly", "keras", "numpy", "protobuf")  # also a second TensorFlow beside the first


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command that sees the packages of its Python only, not the checkout."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def pip(python: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(str(python), "-m", "pip", "--disable-pip-version-check", *arguments)


@pytest.fixture(scope="module")
def wheel(repo_root: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    out, source = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("source")
    names = ("setup.py", "pyproject.toml", "LICENSE", "README.md", "npu_shim", "tools")
    subprocess.run(["cp", "-R", *names, str(source)], cwd=repo_root, check=True)  # setuptools leaves build/ behind
    built = pip(pathlib.Path(sys.executable), "wheel", "--no-deps", "--no-build-isolation", "-w", str(out), str(source))
    assert built.returncode == 0, built.stdout
    return next(out.glob("npu_shim-*.whl"))


def copied(plain: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    """Return the Python of a copy."""
    subprocess.run(["cp", "-a", "-l", str(plain), str(out)], check=True)
    return out / "bin" / "python"


def kept(python: pathlib.Path) -> dict[str, str]:
    listed = run(
        str(python), "-m", "pip", "--disable-pip-version-check", "--no-python-version-warning", "list", "--format=json"
    )
    found = json.loads(listed.stdout[listed.stdout.index("[") :].splitlines()[0])
    names = {each["name"].lower().replace("_", "-"): each["version"] for each in found}
    return {name: version for name, version in names.items() if name.startswith(KEPT)}


@pytest.mark.parametrize("extra", USES)
def test_an_extra_keeps_tensorflow_numpy_and_protobuf(
    extra: str, plain: pathlib.Path, wheel: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    python = copied(plain, tmp_path / "copy")
    before = kept(python)
    assert len(before) >= 3, before
    done = pip(python, "install", f"{wheel}{extra}")
    print(plain.name, extra or "alone", before, kept(python), done.returncode)
    assert kept(python) == before, done.stdout
    reason = REFUSED.get((plain.name.rpartition("-")[0], extra))
    assert (done.returncode == 0) == (reason is None) and (reason or "") in done.stdout, done.stdout
    used = run(str(python), "-c", "import tensorflow" if reason else f"import tensorflow; {USES[extra]}")
    assert used.returncode == 0, used.stdout


def test_the_command_that_export_prints_keeps_them(
    plain: pathlib.Path, wheel: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    python = copied(plain, tmp_path / "copy")
    before = kept(python)
    assert pip(python, "install", str(wheel)).returncode == 0
    printed = run(str(python), "-c", "from npu_shim.exporting.targets import onnx; print(onnx.install_command())")
    command = shlex.split(printed.stdout.splitlines()[-1])
    assert command[0] == str(python)
    done = run(*command)
    assert done.returncode == 0 and kept(python) == before, done.stdout
    used = run(str(python), "-c", f"import tensorflow; {USES['[onnx]']}")
    assert used.returncode == 0, used.stdout
