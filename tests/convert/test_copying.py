"""A run into a folder that holds the copy already: what is the same is not written, what is not is seen."""

from __future__ import annotations

import os
import pathlib
import shutil
import stat
from typing import Callable, Dict, Tuple

import pytest
from convert_tf2npu.files import tree, writer
from convert_tf2npu.files.staging import Staging
from convert_tf2npu.main import main

SCRIPT = "import tensorflow as tf\nsess = tf.Session()\n"
MIGRATED = "import tensorflow as tf\nfrom npu_shim.npu_init import *\nsess = tf.Session(config=npu_config_proto())\n"
State = Dict[str, Tuple[int, int, str]]


def state(folder: pathlib.Path) -> State:
    """Return the inodes, modes and contents of a folder."""
    found: State = {}
    for path in sorted(folder.rglob("*")):
        at = path.lstat()
        held = os.readlink(str(path)) if path.is_symlink() else "" if path.is_dir() else path.read_text()
        found[str(path.relative_to(folder))] = at.st_ino, at.st_mode, held
    return found


@pytest.fixture
def source(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "src"
    (folder / "part" / "empty").mkdir(parents=True)
    for name, text in {"train.py": SCRIPT, "part/plain.py": "x = 1\n", "words.txt": "words\n", "none": ""}.items():
        (folder / name).write_text(text)
    (folder / "train.py").chmod(0o750)
    (folder / "link").symlink_to("words.txt")
    return folder


@pytest.fixture
def out(source: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The copy, of which a new file has its number for certain: what was replaced is kept beside."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(source.parent / "cache"))
    assert main(["-i", str(source), "-o", str(source.parent / "out")]) == 0
    return source.parent / "out"


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The files that each run prepares."""
    seen: list[tuple[str, ...]] = []
    real = writer.build_copy

    def build(source: str, listed: tree.Tree, *more: object) -> list[str]:
        seen.append(tuple(entry.relative for entry in listed.entries))
        return real(source, listed, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(writer, "build_copy", build)
    return seen


@pytest.mark.parametrize("cache", [True, False], ids=["remembered", "converted again"])
def test_nothing_is_written_where_all_is_there(cache: bool, source, out, prepared, monkeypatch) -> None:
    before = state(out)
    for name in ("mkdir", "rename", "chmod", "link", "symlink", "rmdir"):
        monkeypatch.setattr(os, name, lambda *_: pytest.fail("something is written"))
    assert main(["-i", str(source), "-o", str(out)] + ["--no-cache"] * (not cache)) == 0
    assert state(out) == before and not prepared


def replaced_by_link(path: pathlib.Path) -> None:
    path.rename(path.with_name("words2.txt"))
    path.symlink_to("words2.txt")


def made_a_file(path: pathlib.Path) -> None:
    path.unlink()
    path.write_text("words\n")


CHANGES: dict[str, tuple[str, Callable[[pathlib.Path], object]]] = {
    "edited": ("train.py", lambda path: path.write_text(MIGRATED + "# mine\n")),
    "edited, of the same size and time": (
        "part/plain.py",
        lambda path: (
            lambda at: (path.write_text("x = 2\n"), os.utime(str(path), ns=(at.st_atime_ns, at.st_mtime_ns)))
        )(path.stat()),
    ),
    "not migrated": ("train.py", lambda path: path.write_text(SCRIPT)),
    "another mode": ("words.txt", lambda path: path.chmod(0o600)),
    "another mode of what is migrated": ("train.py", lambda path: path.chmod(0o600)),
    "a link in place of a file": ("words.txt", replaced_by_link),
    "a file in place of a link": ("link", made_a_file),
    "another link": ("link", lambda path: (path.unlink(), path.symlink_to("train.py"))),
}


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_changes_in_the_copy_are_found_and_replaced_only_by_force(change: str, source, out, prepared, capsys) -> None:
    fresh, (name, action) = state(out), CHANGES[change]
    action(out / name)
    mine = state(out)
    assert main(["-i", str(source), "-o", str(out)]) == 2
    assert (
        f"has 1 file that differs ({name}). Choose another folder, or replace with --force" in capsys.readouterr().err
    )
    assert state(out) == mine
    assert main(["-i", str(source), "-o", str(out), "--force"]) == 0
    now = state(out)
    assert {each: now[each][1:] for each in fresh} == {each: fresh[each][1:] for each in fresh}
    assert all(now[each] == mine[each] for each in fresh if each != name)
    assert prepared == [(name,)] * 2
    assert sorted(path.name for path in source.parent.iterdir()) == ["cache", "out", "src"]


GONE: dict[str, Callable[[pathlib.Path], object]] = {
    "a script": lambda out: (out / "train.py").unlink(),
    "a link": lambda out: (out / "link").unlink(),
    "an empty folder": lambda out: (out / "part" / "empty").rmdir(),
    "a folder with files": lambda out: shutil.rmtree(str(out / "part")),
    "all": lambda out: [shutil.rmtree(str(p)) if p.is_dir() else p.unlink() for p in list(out.iterdir())],
}


@pytest.mark.parametrize("gone", sorted(GONE))
def test_a_deleted_file_is_written_again_without_force(gone: str, source, out) -> None:
    fresh = state(out)
    GONE[gone](out)
    (out / "notes.txt").write_text("mine\n") if gone != "all" else None
    assert main(["-i", str(source), "-o", str(out)]) == 0
    now = state(out)
    assert {each: now[each][1:] for each in fresh} == {each: fresh[each][1:] for each in fresh}
    assert sorted(path.name for path in source.parent.iterdir()) == ["cache", "out", "src"]


def test_the_mode_of_the_folder_follows_the_source(source, out) -> None:
    source.chmod(0o700)
    assert main(["-i", str(source), "-o", str(out)]) == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o700


def test_a_change_in_the_source_is_a_change_in_the_copy(source, out, prepared, capsys) -> None:
    (source / "words.txt").write_text("other words\n")
    assert main(["-i", str(source), "-o", str(out)]) == 2
    assert "(words.txt)" in capsys.readouterr().err
    assert main(["-i", str(source), "-o", str(out), "--force"]) == 0
    assert (out / "words.txt").read_text() == "other words\n" and prepared[-1] == ("words.txt",)


@pytest.mark.parametrize("place", ["folder", "folder/npu.py"])
def test_a_single_script_through_a_link(place: str, source, tmp_path, prepared) -> None:
    (tmp_path / "train.py").symlink_to(source / "train.py")
    arguments = ["-i", str(tmp_path / "train.py"), "-o", str(tmp_path / place)]
    assert main(arguments) == 0 and main(arguments) == 0 and len(prepared) == 1
    written = tmp_path / place if place.endswith(".py") else tmp_path / place / "train.py"
    assert written.read_text() == MIGRATED and not written.is_symlink()
    written.write_text(SCRIPT)
    assert main(arguments) == 2 and main(arguments + ["--force"]) == 0 and written.read_text() == MIGRATED


def test_another_run_to_the_same_folder_is_waited_for_although_nothing_differs(source, out, capsys) -> None:
    with Staging.beside(str(out)):
        assert main(["-i", str(source), "-o", str(out)]) == 2
        assert "another run is writing to" in capsys.readouterr().err
    assert main(["-i", str(source), "-o", str(out)]) == 0
