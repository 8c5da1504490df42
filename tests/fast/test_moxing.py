"""ModelArts' moxing.file, served on local paths. Nothing here needs TensorFlow."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Iterator

import pytest

from npu_shim._host import moxing as mox


@pytest.fixture
def buckets(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Return the folder NPU_SHIM_OBS, with a bucket that has three files."""
    monkeypatch.setenv("NPU_SHIM_OBS", str(tmp_path / "obs"))
    for name in ("a.txt", "deep/b.txt", "deep/er/c.bin"):
        mox.file.write(f"obs://bucket/data/{name}", name)
    return tmp_path / "obs"


@pytest.fixture
def shifted() -> Iterator[None]:
    """Let Python's functions take paths of OBS during a test."""
    mox.file.shift("os", "mox")
    yield
    mox.file.shift("mox", "os")


def test_a_path_of_obs_is_a_path_below_the_folder(buckets: pathlib.Path) -> None:
    assert (buckets / "bucket" / "data" / "deep" / "b.txt").read_text() == "deep/b.txt"
    assert mox.file.exists("s3://bucket/data/a.txt") and not mox.file.exists("obs://bucket/data/b.txt")
    assert mox.file.is_directory("obs://bucket/data/") and not mox.file.is_directory("obs://bucket/data/a.txt")


def test_a_path_of_obs_without_the_folder_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NPU_SHIM_OBS", raising=False)
    with pytest.raises(ValueError, match=r"'obs://b/x' is a path of OBS.*export NPU_SHIM_OBS=FOLDER"):
        mox.file.read("obs://b/x")


def test_a_path_of_obs_stays_below_the_folder(buckets: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="it has the part '..'"):
        mox.file.remove("obs://bucket/../../x", recursive=True)


def test_copy_parallel_copies_all_folders_or_the_files_of_a_list(buckets: pathlib.Path, tmp_path: pathlib.Path) -> None:
    mox.file.copy_parallel("obs://bucket/data", str(tmp_path / "cache" / "data"))
    assert mox.file.list_directory(str(tmp_path / "cache" / "data"), recursive=True) == [
        "a.txt",
        "deep",
        os.path.join("deep", "b.txt"),
        os.path.join("deep", "er"),
        os.path.join("deep", "er", "c.bin"),
    ]
    mox.file.copy_parallel(str(tmp_path / "cache"), "obs://out/all", file_list=["data/deep/b.txt"])
    assert [p for p in (buckets / "out").rglob("*") if p.is_file()] == [buckets / "out/all/data/deep/b.txt"]
    mox.file.copy_parallel("obs://bucket/data/a.txt", "obs://out/one.txt", threads=4)
    assert mox.file.read("obs://out/one.txt") == "a.txt"


def test_a_folder_copied_below_itself_ends(buckets: pathlib.Path) -> None:
    mox.file.copy_parallel("obs://bucket/data", "obs://bucket/data/again")
    assert mox.file.read("obs://bucket/data/again/deep/b.txt") == "deep/b.txt"
    assert not mox.file.exists("obs://bucket/data/again/again")


def test_copy_takes_files_only_and_makes_the_folder(buckets: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(IsADirectoryError, match="Copy it with mox.file.copy_parallel"):
        mox.file.copy("obs://bucket/data", str(tmp_path / "x"))
    mox.file.copy("obs://bucket/data/a.txt", str(tmp_path / "new" / "a.txt"))
    mox.file.copy(src_url="obs://bucket/data/a.txt", dst_url="obs://bucket/data/deep")
    assert (tmp_path / "new" / "a.txt").read_text() == "a.txt"
    assert mox.file.read("obs://bucket/data/deep/a.txt", binary=True) == b"a.txt"


def test_a_missing_source_is_an_error(buckets: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for call in (mox.file.copy, mox.file.copy_parallel):
        with pytest.raises(FileNotFoundError):
            call("obs://bucket/nothing", str(tmp_path / "x"))


def test_files_are_read_written_and_measured(buckets: pathlib.Path) -> None:
    with mox.file.File("obs://bucket/log/train.log", "w") as stream:
        stream.write("one\ntwo\n")
    mox.file.append("obs://bucket/log/train.log", "three\n")
    with mox.file.File("obs://bucket/log/train.log") as stream:
        assert stream.readline() == "one\n" and list(stream) == ["two\n", "three\n"] and stream.size() == 14
    found = mox.file.stat("obs://bucket/log/train.log")
    assert found.length == 14 and found.mtime_nsec > 0 and not found.is_directory
    assert mox.file.get_size("obs://bucket/data", recursive=True) == len("a.txtdeep/b.txtdeep/er/c.bin")


def test_folders_are_made_listed_moved_and_removed(buckets: pathlib.Path) -> None:
    assert mox.file.list_directory("obs://bucket/data") == ["a.txt", "deep"]
    assert mox.file.list_directory("obs://bucket/data", recursive=True, only_dir=True) == ["deep", "deep/er"]
    assert mox.file.glob("obs://bucket/data/*.txt") == ["obs://bucket/data/a.txt"]
    with pytest.raises(FileNotFoundError):
        mox.file.mk_dir("obs://bucket/new/folder")
    mox.file.make_dirs("obs://bucket/new/folder")
    mox.file.mk_dir("obs://bucket/new/folder")
    mox.file.rename("obs://bucket/data/deep", "obs://bucket/new/moved")
    assert next(mox.file.walk("obs://bucket/new/moved"))[1:] == (["er"], ["b.txt"])
    with pytest.raises(OSError):
        mox.file.remove("obs://bucket/new")
    mox.file.remove("obs://bucket/new", recursive=True)
    assert mox.file.list_directory("obs://bucket") == ["data"]


def test_shifted_functions_of_python_take_paths_of_obs(buckets: pathlib.Path, shifted: None) -> None:
    with open("obs://bucket/data/a.txt") as stream:
        assert stream.read() == "a.txt"
    assert os.listdir("obs://bucket/data/deep") and os.path.isfile("s3://bucket/data/deep/b.txt")
    mox.file.shift("os", "mox")  # a second time
    mox.file.shift("mox", "os")
    assert not os.path.exists("obs://bucket/data/a.txt")
    with pytest.raises(ValueError, match="Give 'os' and 'mox'"):
        mox.file.shift("tf", "mox")


def test_other_parts_of_moxing_are_named() -> None:
    with pytest.raises(AttributeError, match="npu_shim serves moxing.file, but not moxing.set_flag"):
        mox.set_flag  # noqa: B018


def test_the_alias_serves_moxing_and_leaves_an_installed_one(tmp_path: pathlib.Path, repo_root: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(
        "import moxing as mox\nmox.file.shift('os', 'mox')\n"
        "mox.file.copy_parallel('obs://bucket/data', 'cache')\nprint(open('s3://bucket/data/x').read(), mox.__name__)\n"
    )
    (tmp_path / "bucket" / "data").mkdir(parents=True)
    (tmp_path / "bucket" / "data" / "x").write_text("read")
    env = {**os.environ, "PYTHONPATH": str(repo_root), "NPU_SHIM_OBS": str(tmp_path)}
    command = [sys.executable, "-m", "npu_shim", "run", "--alias", "train.py"]

    def output() -> tuple[str, str]:
        done = subprocess.run(command, cwd=str(tmp_path), env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    assert output()[0] == "read npu_shim._host.moxing\n"
    (tmp_path / "moxing.py").write_text("class file:\n    shift = copy_parallel = staticmethod(print)\nopen = None\n")
    (tmp_path / "train.py").write_text("import moxing as mox\nprint(mox.__name__)\n")
    assert output() == ("moxing\n", "")
