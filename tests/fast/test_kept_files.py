"""Commands take back what a script writes, and restore what it changes or deletes."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap
import time
from typing import Any

import pytest

from npu_shim.rehearsal.files import temporary
from npu_shim.rehearsal.files.kept import leftover_stores_with_copies, restore_files

BEFORE = """
import os, pathlib, shutil, sys

from npu_shim.rehearsal.files.kept import Kept
from npu_shim.rehearsal.files.file_watch import Watch

kept = Kept(sys.argv[1])
Watch(kept).start()
"""
CHANGES = {
    "append": "open('log.txt', 'a').write('more')",
    "append twice": "open('log.txt', 'a').write('1'); open('log.txt', 'a').write('2')",
    "truncate": "os.truncate('log.txt', 2)",
    "replace": "open('new', 'w').write('x'); os.replace('new', 'log.txt')",
    "remove, and make again": "os.remove('log.txt'); open('log.txt', 'w').write('x')",
    "rename": "os.rename('log.txt', 'old.txt')",
    "pathlib": "pathlib.Path('log.txt').write_text('x'); pathlib.Path('a').mkdir(); pathlib.Path('a/b').touch()",
    "a descriptor": "os.write(os.open('log.txt', os.O_WRONLY), b'12'); os.open('new', os.O_CREAT)",
    "folders": "os.makedirs('a/b'); open('a/b/c', 'w').write('x'); os.system('echo > a/b/d')",
    "a folder that is there": "os.makedirs('model', exist_ok=True); open('model/new', 'w')",
    "remove a folder": "shutil.rmtree('model')",
    "remove a folder, and make it again": "shutil.rmtree('model'); os.mkdir('model'); open('model/a', 'w').write('x')",
    "rename a folder": "os.rename('model', 'old'); shutil.copytree('old', 'model')",
    "change, then rename the folder": "open('model/a', 'a').write('x'); os.rename('model', 'old')",
    "remove an empty folder": "os.rmdir('empty')",
    "links": "os.symlink('log.txt', 'new'); os.remove('link'); open('link', 'w').write('x')",
    "through a link": "open('link', 'w').write('x')",
    "a copy": "shutil.copytree('model', 'copy'); shutil.copy('log.txt', 'model/a')",
    "no file": "open(os.dup(1), 'w').write(''); open('log.txt').read(); open('/dev/null', 'w')",
}


def run(code: str, store: pathlib.Path, folder: pathlib.Path) -> None:
    subprocess.run([sys.executable, "-c", BEFORE + textwrap.dedent(code), str(store)], cwd=str(folder), check=True)


def state(folder: pathlib.Path) -> dict[str, Any]:
    """Return content, time and mode of what is below a folder."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        about, name = path.lstat(), str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(str(path))
        else:
            found[name] = about.st_mode, path.is_file() and (path.read_bytes(), about.st_mtime_ns)
    return found


@pytest.fixture()
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    made = tmp_path / "project"
    for name in ("model", "empty"):
        (made / name).mkdir(parents=True)
    (made / "empty").chmod(0o750)
    for name in ("log.txt", "model/a", "model/b"):
        (made / name).write_text(f"content of {name}")
    (made / "link").symlink_to("log.txt")
    return made


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_taken_back(change: str, folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    before = state(folder)
    run(CHANGES[change], tmp_path / "store", folder)
    assert change == "no file" or state(folder) != before
    restore_files(str(tmp_path / "store"))
    assert state(folder) == before and not (tmp_path / "store").exists()


def test_changes_of_others_stay(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A person works in the folder, and another script trains there."""
    run("open('model/new', 'w').write('x'); open('log.txt', 'a').write('x')", tmp_path / "store", folder)
    (folder / "model" / "b").write_text("another one")
    (folder / "notes").write_text("mine")
    restore_files(str(tmp_path / "store"))
    assert (folder / "model" / "b").read_text() == "another one" and (folder / "notes").read_text() == "mine"
    assert (folder / "log.txt").read_text() == "content of log.txt" and not (folder / "model" / "new").exists()


def test_a_rank_may_change_what_another_one_makes(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    before = state(folder)
    run("open('shared', 'w').write('x'); os.makedirs('out')", tmp_path / "store", folder)
    run("open('shared', 'a').write('y'); os.remove('shared')", tmp_path / "store", folder)
    run("os.makedirs('out', exist_ok=True); open('out/a', 'w')", tmp_path / "store", folder)
    restore_files(str(tmp_path / "store"))
    assert state(folder) == before


def test_names_of_checkpoints(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Kernels of TensorFlow write these; only the prefix is known before."""
    for name in ("ckpt-1.index", "ckpt-1.data-00000-of-00001"):
        (folder / "model" / name).write_text(name)
    before = state(folder)
    code = """
    for number in 1, 2, 3:  # one more, which removes the oldest one
        kept.note_prefix('model/ckpt', is_checkpoint=True)
        os.system(f'echo > model/new; mv model/new model/ckpt-{number}.data-00000-of-00001; echo > model/ckpt-{number}.index')
    for number in 1, 2:
        kept.note_replace(f'model/ckpt-{number}.index', creates=False)
        os.remove(f'model/ckpt-{number}.index')
    """
    run(code, tmp_path / "store", folder)
    restore_files(str(tmp_path / "store"))
    assert state(folder) == before


def test_a_killed_command_leaves_the_copies(
    folder: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stay, and are named, also when old folders are removed."""
    monkeypatch.setattr(temporary.tempfile, "gettempdir", lambda: str(tmp_path))
    killed, empty = tmp_path / "npu_shim_verify_1", tmp_path / "npu_shim_assess_2"
    for each in (killed, empty):
        each.mkdir()
    run("open('log.txt', 'w').write('x')", killed / "original" / "kept", folder)
    run("open('new', 'w').write('x')", empty / "kept", folder)
    for each in (killed, empty):
        os.utime(str(each), (0, time.time() - 2 * 24 * 3600))
    assert (
        temporary.leftover_copies() == [str(killed / "original" / "kept")] == leftover_stores_with_copies(str(killed))
    )
    with temporary.command_folder("npu_shim_verify_") as new:
        os.utime(new, (0, 0))
        assert killed.exists() and not empty.exists()
        with temporary.command_folder("npu_shim_verify_"):
            assert os.path.exists(new), "its command runs"
    with temporary.command_folder("npu_shim_verify_"):
        assert not os.path.exists(new)
    restore_files(str(killed / "original" / "kept"))
    assert (folder / "log.txt").read_text() == "content of log.txt"
