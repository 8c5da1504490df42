"""tools/release.py builds a release from a tag, and the same bytes each time."""

from __future__ import annotations

import hashlib
import os
import pathlib
import subprocess
import sys
import tarfile
import zipfile

import pytest

import npu_shim

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
