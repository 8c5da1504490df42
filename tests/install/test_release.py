"""tools/release.py builds a release from a tag, the same bytes each time. Both archives work in clean environments."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import zipfile

import pytest

import npu_shim
from tests.install.test_install import copied, kept, pip

pytestmark = pytest.mark.nightly

BUILT_FROM = ("setup.py", "pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "npu_shim", "tools")
TAG = f"v{npu_shim.__version__}"
ENVIRONMENT = {
    **os.environ,
    **{
        f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in (("NAME", "a"), ("EMAIL", "a@b"))
    },
    "GIT_AUTHOR_DATE": "2024-05-06T07:08:09Z",
    "GIT_COMMITTER_DATE": "2024-05-06T07:08:09Z",
}

LOOP = """import numpy as np
import tensorflow as tf

features = np.random.RandomState(1).rand(64, 4).astype("float32")
data = tf.data.Dataset.from_tensor_slices((features, features.sum(1, keepdims=True))).batch(8)
weight = tf.Variable(tf.ones([4, 1]))
optimizer = tf.keras.optimizers.SGD(0.1)


@tf.function
def step(inputs, targets):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.dropout(inputs, rate=0.1), weight) - targets))
    optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
    return loss


for inputs, targets in data:
    print(float(step(inputs, targets)))
"""
FIT = """import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
features = np.random.RandomState(1).rand(64, 4).astype("float32")
data = tf.data.Dataset.from_tensor_slices((features, features.sum(1, keepdims=True))).batch(8)
model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dropout(0.1), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
model.fit(data, epochs=1, verbose=0)
"""
SESSION = """import numpy as np
import tensorflow as tf

weight = tf.get_variable("weight", [3, 1])
inputs = tf.placeholder(tf.float32, [4, 3])
loss = tf.reduce_mean(tf.square(tf.nn.dropout(tf.matmul(inputs, weight), keep_prob=0.9) - 1.0))
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(5):
        session.run([train, loss], {inputs: np.ones([4, 3], np.float32)})
"""
ESTIMATOR = """import numpy as np
import tensorflow as tf


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    train = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def input_fn():
    features = np.random.RandomState(1).rand(64, 4).astype("float32")
    return tf.data.Dataset.from_tensor_slices((features, features.sum(1, keepdims=True))).batch(8).repeat()


tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(tf_random_seed=1)).train(input_fn, max_steps=5)
"""


def git(checkout: pathlib.Path, *arguments: str) -> None:
    command = ["git", "-c", "gc.auto=0", *arguments]
    subprocess.run(command, cwd=checkout, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def checkouts(repo_root: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> list[pathlib.Path]:
    """Two checkouts of one tagged commit: other folders, dates and permissions."""
    first = tmp_path_factory.mktemp("one")
    subprocess.run(["cp", "-R", *BUILT_FROM, str(first)], cwd=repo_root, check=True)
    (first / ".gitignore").write_text("__pycache__/\n")
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"], ["tag", TAG], ["tag", "v9.9"]):
        git(first, *arguments)
    second = tmp_path_factory.mktemp("another_folder") / "with" / "a_longer_path"
    second.parent.mkdir(parents=True)
    old = os.umask(0o077)
    try:
        git(first, "clone", "-q", str(first), str(second))
    finally:
        os.umask(old)
    git(second, "config", "tar.umask", "077")
    (second / "npu_shim" / "uncommitted.py").write_text("")
    return [first, second]


def release(checkout: pathlib.Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(checkout / "tools" / "release.py"), *arguments]
    return subprocess.run(
        command,
        cwd=checkout,
        env={**ENVIRONMENT, **variables},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def built(checkouts: list[pathlib.Path]) -> list[pathlib.Path]:
    """The folders with what each checkout builds."""
    for checkout, zone, source in zip(checkouts, ("UTC", "Asia/Shanghai"), (TAG, "--untagged")):
        done = release(checkout, source, TZ=zone)
        assert done.returncode == 0, done.stderr
        for path in (checkout / "dist").iterdir():
            if path.suffix in (".whl", ".gz"):
                assert f"gpg --armor --detach-sign dist/{path.name}" in done.stdout
                assert hashlib.sha256(path.read_bytes()).hexdigest() + f"  {path.name}\n" in done.stdout
    return [checkout / "dist" for checkout in checkouts]


def names(version: str = npu_shim.__version__) -> list[str]:
    return [f"npu_shim-{version}-py3-none-any.whl", f"npu_shim-{version}.tar.gz"]


def test_two_builds_have_equal_bytes(built: list[pathlib.Path]) -> None:
    first, second = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in built]
    assert sorted(first) == sorted([*names(), "SHA256SUMS"])
    assert first == second


def test_the_wheel_of_the_source_archive_is_the_wheel(built: list[pathlib.Path], tmp_path: pathlib.Path) -> None:
    wheel, archive = names()
    with tarfile.open(built[0] / archive) as packed:
        packed.extractall(tmp_path)
    (source,) = tmp_path.iterdir()
    for arguments in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-q", "-m", "x"]):
        git(source, *arguments)
    done = release(built[0].parent, "--untagged", "--root", str(source), "-o", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / wheel).read_bytes() == (built[0] / wheel).read_bytes()


def test_the_files_have_the_date_of_the_commit_and_plain_permissions(built: list[pathlib.Path]) -> None:
    wheel, archive = names()
    with zipfile.ZipFile(built[1] / wheel) as packed:
        infos = packed.infolist()
    assert {info.date_time for info in infos} == {(2024, 5, 6, 7, 8, 8)}  # a zip archive counts in steps of 2 seconds
    assert {info.external_attr >> 16 & 0o777 for info in infos} <= {0o644, 0o755}
    assert infos[-1].filename.endswith(".dist-info/RECORD")
    with tarfile.open(built[1] / archive) as packed_source:
        members = packed_source.getmembers()
    assert {(member.mtime, member.uid, member.gid, member.uname) for member in members} == {(1714979289, 0, 0, "")}
    assert not [info.filename for info in infos if "uncommitted" in info.filename]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["v9.9"], f"the tag v9.9 has the version {npu_shim.__version__}"),
        (["v0.0.7"], "there is no tag v0.0.7"),
        ([], "one of the arguments tag --untagged is required"),
    ],
)
def test_another_tag_is_an_error(arguments: list[str], message: str, checkouts: list[pathlib.Path]) -> None:
    done = release(checkouts[0], *arguments)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


def installed(python: pathlib.Path, archive: pathlib.Path) -> None:
    """Install an archive without an index."""
    done = pip(python, "install", "--no-index", "--no-build-isolation", str(archive))
    assert done.returncode == 0, done.stdout


class Shell:
    """Runs the commands of an environment in a folder outside of any checkout, as a user who has nothing else."""

    def __init__(self, python: pathlib.Path, folder: pathlib.Path) -> None:
        self.python, self.folder = python, folder
        folder.mkdir()
        hidden = ("NPU_SHIM", "XDG", "PYTHON")
        self.environment = {name: text for name, text in os.environ.items() if not name.startswith(hidden)}
        self.environment["HOME"] = str(folder)

    def __call__(self, command: str, code: int = 0) -> str:
        """Run a command and return its output."""
        name, *arguments = command.split()
        done = subprocess.run(
            [str(self.python.parent / name), *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        print(f"$ {command}\n{done.stdout}")
        assert done.returncode == code and "Traceback" not in done.stdout, done.stdout
        return done.stdout

    def verdict(self, report: str) -> object:
        """Return the verdict in the report of a migration."""
        return json.loads((self.folder / report / "migrate.json").read_text())["verified"]["verdict"]


@pytest.mark.parametrize("kind", ["wheel", "source archive"])
def test_it_works_in_a_clean_environment(
    kind: str, plain: pathlib.Path, built: list[pathlib.Path], tmp_path: pathlib.Path
) -> None:
    archive = built[0] / names()[kind != "wheel"]
    python = copied(plain, tmp_path / "copy")
    before, checked = kept(python), pip(python, "check").stdout
    installed(python, archive)
    print(plain.name, archive.name, f"{archive.stat().st_size:,} bytes", before)
    assert kept(python) == before and pip(python, "check").stdout == checked
    shell = Shell(python, tmp_path / "work")
    where = (tmp_path / "work" / "where.py").write_text("import npu_shim; print(npu_shim.__file__)") and shell(
        "python where.py"
    )
    assert where.startswith(str(tmp_path / "copy"))
    assert shell("npu-shim --version") == f"npu_shim {npu_shim.__version__}\n"
    shell("npu-shim doctor")
    scripts = (SESSION, ESTIMATOR) if "tf115" in plain.name else (LOOP, FIT)
    for number, script in enumerate(scripts if kind == "wheel" else scripts[:1]):
        (shell.folder / f"train{number}.py").write_text(script)
        shell(f"convert_tf2npu -i train{number}.py -o converted{number} -r reports{number}")
        shell(f"npu-shim migrate train{number}.py -o out{number} --steps 3")
        assert shell.verdict(f"out{number}_report") == "agree"


@pytest.fixture(scope="module")
def older(checkouts: list[pathlib.Path], tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The wheel of an older version."""
    folder = tmp_path_factory.mktemp("older") / "checkout"
    git(folder.parent, "clone", "-q", str(checkouts[0]), str(folder))
    path = folder / "npu_shim" / "__init__.py"
    path.write_text(path.read_text().replace(f'"{npu_shim.__version__}"', '"0.0.9"'))
    git(folder, "commit", "-q", "-a", "-m", "x")
    done = release(folder, "--untagged")
    assert done.returncode == 0, done.stderr
    return folder / "dist" / names("0.0.9")[0]


@pytest.mark.parametrize("plain", ["plain_tf215"], indirect=True)
def test_an_upgrade_keeps_the_files_of_its_user(
    plain: pathlib.Path, older: pathlib.Path, built: list[pathlib.Path], tmp_path: pathlib.Path
) -> None:
    python = copied(plain, tmp_path / "copy")
    installed(python, older)
    shell = Shell(python, tmp_path / "work")
    (shell.folder / "train.py").write_text(LOOP)
    assert shell("npu-shim --version") == "npu_shim 0.0.9\n"
    shell("npu-shim observe --steps 3 -o facts.json train.py")
    shell("convert_tf2npu -i train.py --facts facts.json -o converted -r reports")
    shell("npu-shim verify --record recording --steps 3 train.py")
    shell("npu-shim assess train.py --json assess.json")
    shell("npu-shim migrate train.py -o out --steps 3")
    written = {name: (shell.folder / name).read_bytes() for name in ("converted/train.py", "out/train.py")}
    assert (shell.folder / ".cache" / "convert_tf2npu").is_dir()

    installed(python, built[0] / names()[0])
    assert shell("npu-shim --version") == f"npu_shim {npu_shim.__version__}\n"
    assert "No broken requirements" in pip(python, "check").stdout
    shell("npu-shim verify --against recording converted/train.py")
    shell("npu-shim observe --steps 3 -o facts.json train.py")
    shell("convert_tf2npu -i train.py --facts facts.json -o converted -r reports --force")
    shell("npu-shim migrate train.py -o out --steps 3 --force")
    assert written == {name: (shell.folder / name).read_bytes() for name in written}
