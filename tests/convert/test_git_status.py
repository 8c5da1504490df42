"""Changing in place is refused where git could not undo it, and only there."""

from __future__ import annotations

import os
import pathlib
import subprocess
from typing import Any

import pytest
from convert_tf2npu.main import main

pytestmark = pytest.mark.once

SCRIPT = "import tensorflow as tf\ntf.Session()\n"


def git(folder: pathlib.Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "protocol.file.allow=always"]
        + list(arguments),
        cwd=str(folder),
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture
def work(tmp_path: pathlib.Path) -> pathlib.Path:
    """A work tree with one committed script."""
    folder = tmp_path / "work"
    (folder / "part").mkdir(parents=True)
    (folder / "part" / "train.py").write_text(SCRIPT)
    (folder / "old name.txt").write_text("a\n" * 20)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "start")
    return folder


def in_place(source: pathlib.Path, capsys: Any, *more: str) -> str:
    """Return the output on standard error; nothing if the source was changed."""
    before = [p.read_bytes() for p in sorted(source.parent.rglob("*.py"))]
    code = main(["-i", str(source), "--in-place"] + list(more))
    error = capsys.readouterr().err
    assert code == (2 if error else 0) and len(error.splitlines()) == bool(error)
    assert ([p.read_bytes() for p in sorted(source.parent.rglob("*.py"))] == before) is bool(error)
    return error


def test_a_clean_tree_is_changed_and_a_second_run_has_nothing_to_do(work: pathlib.Path, capsys) -> None:
    assert in_place(work, capsys) == ""
    git(work, "commit", "-qam", "migrate")
    assert main(["-i", str(work), "--in-place"]) == 0
    status = ["git", "status", "--porcelain", "--ignored"]
    assert subprocess.run(status, cwd=str(work), stdout=subprocess.PIPE).stdout == b""


@pytest.mark.parametrize(
    "path,text,says",
    [
        ("part/train.py", SCRIPT + "# mine\n", "part/train.py"),
        ("part/new.py", SCRIPT, "part/new.py"),
        ("new folder/notes.txt", "mine\n", "new folder/notes.txt"),
        ("caf\u00e9\n.txt", "mine\n", "caf\u00e9"),
    ],
    ids=["changed", "untracked", "untracked in a new folder", "a strange name"],
)
def test_uncommitted_files_are_named(path: str, text: str, says: str, work: pathlib.Path, capsys) -> None:
    (work / path).parent.mkdir(exist_ok=True)
    (work / path).write_text(text)
    error = main(["-i", str(work), "--in-place"]), capsys.readouterr().err
    assert error[0] == 2 and says in error[1] and "has uncommitted changes" in error[1] and "--force" in error[1]
    assert main(["-i", str(work), "--in-place", "--force"]) == 0


def test_a_renamed_file_is_named_by_its_new_name(work: pathlib.Path, capsys) -> None:
    git(work, "mv", "old name.txt", "new name.txt")
    assert "(new name.txt)" in in_place(work, capsys)


def test_a_part_is_judged_by_itself(work: pathlib.Path, capsys) -> None:
    (work / "notes.txt").write_text("mine\n")
    assert in_place(work / "part", capsys) == ""


def test_a_file_that_git_ignores_is_not_changed_but_others_may_be_ignored(work: pathlib.Path, capsys) -> None:
    (work / ".gitignore").write_text("/build/\n*.log\n")
    git(work, "add", ".")
    git(work, "commit", "-qm", "ignore")
    (work / "run.log").write_text("x")
    (work / "build").mkdir()
    (work / "build" / "notes.py").write_text("x = 1\n")
    (work / "build" / "train.py").write_text(SCRIPT)
    assert "build/train.py, so you could not undo the migration" in in_place(work, capsys)
    assert main(["-i", str(work), "--in-place", "--exclude", "build"]) == 0
    assert (work / "build" / "train.py").read_text() == SCRIPT


def test_a_linked_work_tree_and_a_submodule_are_work_trees(work: pathlib.Path, capsys) -> None:
    git(work, "worktree", "add", "-q", "../linked")
    linked = work.parent / "linked"
    (linked / "part" / "new.py").write_text(SCRIPT)
    assert "part/new.py" in in_place(linked, capsys)
    (linked / "part" / "new.py").unlink()
    assert in_place(linked, capsys) == ""
    outer = work.parent / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "add", "-q", str(work), "inner")
    git(outer, "config", "-f", ".gitmodules", "submodule.inner.ignore", "all")
    git(outer, "add", ".")
    git(outer, "commit", "-qm", "start")
    (outer / "inner" / "part" / "train.py").write_text(SCRIPT + "# mine\n")
    assert "(inner)" in in_place(outer, capsys)
    git(outer / "inner", "checkout", "-q", ".")
    assert in_place(outer, capsys) == ""


def test_without_a_work_tree_nothing_is_refused(tmp_path: pathlib.Path, capsys) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "train.py").write_text(SCRIPT)
    assert in_place(tmp_path / "plain", capsys) == ""
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    (tmp_path / "bare.git" / "hook.py").write_text(SCRIPT)
    assert in_place(tmp_path / "bare.git", capsys) == ""


def test_an_unknown_git_status_is_refused(work: pathlib.Path, monkeypatch, capsys) -> None:
    index = work / ".git" / "index"
    raw = index.read_bytes()
    index.write_bytes(b"broken")
    assert "for uncommitted changes (" in in_place(work, capsys)
    index.write_bytes(raw)
    monkeypatch.setenv("PATH", "")
    assert "(git is not installed)" in in_place(work, capsys)


def test_without_git_a_plain_folder_is_changed(tmp_path: pathlib.Path, monkeypatch, capsys) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "train.py").write_text(SCRIPT)
    monkeypatch.setenv("PATH", "")
    assert in_place(tmp_path / "plain", capsys) == ""


def test_a_single_script_is_judged_with_its_folder(work: pathlib.Path, capsys) -> None:
    script = work / "part" / "train.py"
    script.chmod(0o755)
    assert "uncommitted changes" in in_place(script, capsys)
    git(work, "commit", "-qam", "run bit")
    assert in_place(script, capsys) == "" and os.access(str(script), os.X_OK)


def test_a_killed_run_is_undone_before_git_is_asked(work: pathlib.Path, capsys) -> None:
    left: list[str] = ["convert_tf2npu, process 1\n"]
    (work / ".convert_tf2npu").mkdir()
    (work / ".convert_tf2npu" / "lock").write_text(left[0])
    assert in_place(work, capsys) == "" and not (work / ".convert_tf2npu").exists()
