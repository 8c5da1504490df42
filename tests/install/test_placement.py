"""npu_shim works in a folder that its user may not write, and installs from a folder of wheels without an index."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.nightly

BUILT_FROM = ("setup.py", "pyproject.toml", "LICENSE", "README.md", "npu_shim", "tools")
# Permissions bind root, too, without this capability.
AS_A_USER = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"] if os.geteuid() == 0 else []
SCRIPT = """
import numpy as np
import tensorflow as tf
tf.compat.v1.disable_eager_execution()
weight = tf.compat.v1.get_variable("weight", [3, 1])
inputs = tf.compat.v1.placeholder(tf.float32, [4, 3])
loss = tf.reduce_mean(tf.square(tf.nn.dropout(tf.matmul(inputs, weight), rate=0.0) - 1.0))
train = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.compat.v1.Session() as session:
    session.run(tf.compat.v1.global_variables_initializer())
    for _ in range(3):
        session.run([train, loss], {inputs: np.ones([4, 3], np.float32)})
"""
COMMANDS = (  # and their exit codes
    ("npu-shim --version", 0),
    ("npu-shim doctor", 0),
    ("convert_tf2npu -i train.py -o converted -r reports", 0),
    ("convert_tf2npu -i train.py", 0),  # with what the first one kept
    ("npu-shim run train.py", 0),
    ("npu-shim assess train.py --json assess.json", 0),
    ("npu-shim migrate train.py -o out", 0),
    ("npu-shim launch --ranks 2 converted/train.py", 0),
)


def run(*command: str, **settings: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **settings)  # type: ignore[call-overload]


def pip(python: str, *arguments: str) -> None:
    done = run(python, "-m", "pip", "--disable-pip-version-check", *arguments)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def wheels(repo_root: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with the wheel of npu_shim, and with those that it and its extra for profiles need (docs/start.md)."""
    out, source = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("source")
    subprocess.run(["cp", "-R", *BUILT_FROM, str(source)], cwd=repo_root, check=True)
    pip(sys.executable, "wheel", "-q", "--no-build-isolation", "-w", str(out), f"{source}[profile]")
    return out


@pytest.fixture
def installed(wheels: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """The folder of the packages, installed without an index and beside the TensorFlow of these tests."""
    place = tmp_path / "packages"
    pip(
        sys.executable,
        "install",
        "-q",
        "--no-index",
        "--find-links",
        str(wheels),
        "--target",
        str(place),
        "npu_shim[profile]",
    )
    return place


def contents(folder: pathlib.Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


def test_it_works_where_only_root_may_write(installed: pathlib.Path, tmp_path: pathlib.Path) -> None:
    subprocess.run(["chmod", "-R", "a-w", str(installed)], check=True)
    work, home = tmp_path / "work", tmp_path / "home"
    for folder in (work, home):
        folder.mkdir()
    (work / "train.py").write_text(SCRIPT)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NPU_SHIM", "XDG"))}
    environment.update(PYTHONPATH=str(installed), HOME=str(home))
    before = contents(installed)
    try:
        denied = run(*AS_A_USER, "touch", str(installed / "new"))
        assert denied.returncode, "the folder can be written"
        for command, code in COMMANDS:
            name, *arguments = command.split()
            done = run(*AS_A_USER, str(installed / "bin" / name), *arguments, cwd=work, env=environment)
            print(f"$ {command}\n{done.stdout}")
            assert done.returncode == code, done.stdout
            assert "Permission denied" not in done.stdout and "Traceback" not in done.stdout, done.stdout
        assert contents(installed) == before
        assert (work / "reports" / "report.json").exists() and (work / "out" / "train.py").exists()
        where = run(sys.executable, "-c", "import npu_shim; print(npu_shim.__file__)", cwd=work, env=environment)
        assert where.stdout.strip() == str(installed / "npu_shim" / "__init__.py")
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(installed)], check=True)
