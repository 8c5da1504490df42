"""Sources and targets of every kind: each is read or written, or has one clear answer."""

from __future__ import annotations

import importlib
import io
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import traceback
from typing import Any, Callable, Iterator

import convert_tf2npu
import pytest
from convert_tf2npu.main import main

pytestmark = [pytest.mark.once, pytest.mark.slow]

SCRIPT = "import tensorflow as tf\ntf.Session()\n"
MIGRATED = "import tensorflow as tf\nfrom npu_shim.npu_init import *\ntf.Session(config=npu_config_proto())\n"
TOOLS = str(pathlib.Path(convert_tf2npu.__file__).parent.parent)
NOBODY = 65534


@pytest.fixture
def source(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "src"
    (folder / "part").mkdir(parents=True)
    (folder / "train.py").write_text(SCRIPT)
    (folder / "part" / "words.txt").write_text("words\n")
    return folder


def run(arguments: list[str], folder: pathlib.Path, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own, which may not take long."""
    return subprocess.run(
        [sys.executable, "-m", "convert_tf2npu.main"] + arguments,
        cwd=str(folder),
        timeout=300,
        capture_output=True,
        env=dict(os.environ, PYTHONPATH=TOOLS),
        **more,
    )


def _imported_from(tools: pathlib.Path) -> Callable[[list[str]], int]:
    """The tool's main function, of another copy of the tool."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "convert_tf2npu"]:
        del sys.modules[name]
    sys.path.insert(0, str(tools))
    module = importlib.import_module("convert_tf2npu.main")
    assert str(module.__file__).startswith(str(tools))
    return module.main  # type: ignore[no-any-return]


def run_as_nobody(arguments: list[str], folder: pathlib.Path) -> subprocess.CompletedProcess[bytes]:
    """The command as a user who owns nothing, for root may read and write everything.

    It runs in a fork of this process: that user may not even be able to start this Python, nor to read the checkout, of
    which the fork imports a copy.
    """
    streams = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
    tools = pathlib.Path(tempfile.mkdtemp(dir=str(folder.parent)))
    shutil.copytree(os.path.join(TOOLS, "convert_tf2npu"), str(tools / "convert_tf2npu"))
    for path in [tools] + list(tools.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    child = os.fork()
    if child == 0:
        code = 70
        try:
            command = _imported_from(tools)
            sys.stdout, sys.stderr = (io.TextIOWrapper(stream, write_through=True) for stream in streams)
            (tools / "script.py").write_text(SCRIPT)
            loads_all = ["-i", str(tools / "script.py"), "--check", "-r", str(tools / "reports")]
            assert command(loads_all) == 1
            for stream in streams:
                stream.seek(0)
                stream.truncate()
            os.chdir(str(folder))
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            code = command(arguments)
            for stream in streams:
                stream.flush()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    code = os.waitpid(child, 0)[1] >> 8
    texts = []
    for stream in streams:
        stream.seek(0)
        texts.append(stream.read())
    return subprocess.CompletedProcess(arguments, code, *texts)


def content(folder: pathlib.Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def fifo(path: pathlib.Path) -> None:
    os.mkfifo(str(path))


def bound_socket(path: pathlib.Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(str(path.parent))  # such paths must be short
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


def device(path: pathlib.Path) -> None:
    path.symlink_to("/dev/null")


@pytest.mark.parametrize("make", [fifo, bound_socket, device], ids=["a pipe", "a socket", "a device"])
def test_a_source_must_be_a_file_or_folder(make: Callable[[pathlib.Path], None], tmp_path: pathlib.Path) -> None:
    make(tmp_path / "thing.py")
    for more in ([], ["-o", "out"], ["--in-place", "--force"]):
        done = run(["-i", "thing.py"] + more, tmp_path)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
        assert b"thing.py is neither a file nor a folder. Use -i - to read a script from a pipe" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["thing.py"]


@pytest.mark.parametrize("make", [fifo, bound_socket], ids=["a pipe", "a socket"])
def test_special_files_in_a_source_are_named_and_left_out(make: Callable[[pathlib.Path], None], source) -> None:
    make(source / "part" / "thing.py")
    done = run(["-i", "src", "-o", "out"], source.parent)
    assert done.returncode == 0 and b"not part of the migration: part/thing.py" in done.stdout
    assert not (source.parent / "out" / "part" / "thing.py").exists()


def test_folders_nested_deeper_than_python_calls(tmp_path: pathlib.Path) -> None:
    here = os.getcwd()
    depth = sys.getrecursionlimit() + 50
    (tmp_path / "src").mkdir()
    try:
        os.chdir(str(tmp_path / "src"))
        for _ in range(depth):
            os.mkdir("d")
            os.chdir("d")
        pathlib.Path("a.py").write_text(SCRIPT)
    finally:
        os.chdir(here)
    done = run(["-i", "src", "-o", "out"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "/".join("d" * depth) / "a.py").read_text() == MIGRATED
    assert run(["-i", "src", "--in-place"], tmp_path).returncode == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "src"]
    assert run(["-i", "src", "-o", "x" * 100 + "/" + "y" * 200], tmp_path).returncode == 0
    (tmp_path / "src" / "other.py").write_text(SCRIPT)
    done = run(["-i", "src", "-o", "z" * 255 + "/" + "z" * 200 + "/" + "/".join(["z" * 250] * 4)], tmp_path)
    assert done.returncode == 2 and b"File name too long" in done.stderr and len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("zz*"))
    subprocess.run(
        ["rm", "-rf", str(tmp_path / "src"), str(tmp_path / "out")] + [str(p) for p in tmp_path.glob("xx*")], check=True
    )


NAMES = [b"new\nline.py", b"\xff\xfe.py", "caf\u00e9 \u4e2d.py".encode(), b"-r.py", b"a b\t\"'.py", b"tab\x1b[31m.py"]


@pytest.mark.parametrize(
    "more", [[], ["--check"], ["-o", "out", "-r", "reports"], ["-o", "out", "-j", "2", "-v"]], ids=" ".join
)
def test_names_of_files_may_be_anything(more: list[str], tmp_path: pathlib.Path) -> None:
    for folder in ("src", "src/p\nq"):
        (tmp_path / folder).mkdir()
        for name in NAMES:
            with open(os.path.join(os.fsencode(str(tmp_path / folder)), name), "w") as stream:
                stream.write(SCRIPT)
    done = run(["-i", "src"] + more, tmp_path)
    assert done.returncode == (1 if "--check" in more else 0), done.stderr
    assert b"Traceback" not in done.stderr and b"\x1b" not in done.stdout + done.stderr
    assert b"12 Python files, 12 changed" in done.stdout + done.stderr
    assert not any(line.startswith((b"line.py", b"q/")) for line in (done.stdout + done.stderr).splitlines())
    if "out" in more:
        for name in NAMES:
            with open(os.path.join(os.fsencode(str(tmp_path / "out")), name)) as stream:
                assert stream.read() == MIGRATED
        if "-r" in more:
            assert (tmp_path / "reports" / "report.json").exists()
    elif not more:
        subprocess.run(["git", "apply", "-p1", "-"], input=done.stdout, cwd=str(tmp_path / "src"), check=True)
        assert {text for text in content(tmp_path / "src").values()} == {MIGRATED.encode()}


@pytest.fixture
def open_source() -> Iterator[pathlib.Path]:
    """The same in a folder that other users can reach: pytest closes its own whenever it starts."""
    top = pathlib.Path(tempfile.mkdtemp())
    (top / "top" / "src" / "part").mkdir(parents=True)
    (top / "top" / "src" / "train.py").write_text(SCRIPT)
    (top / "top" / "src" / "part" / "words.txt").write_text("words\n")
    for path in [top] + list(top.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    yield top / "top" / "src"
    subprocess.run(["chmod", "-R", "u+rwx", str(top)], check=True)
    shutil.rmtree(str(top))


def test_the_user_may_not_read_or_write_everything(open_source: pathlib.Path) -> None:
    source, top = open_source, open_source.parent
    mine = top / "mine"
    mine.mkdir()
    if os.geteuid() == 0:
        os.chown(str(mine), NOBODY, NOBODY)

    def tried(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        top.chmod(0o555)
        source.chmod(source.stat().st_mode & 0o555)
        return run_as_nobody(list(arguments), top)

    def refused(done: subprocess.CompletedProcess[bytes], words: bytes) -> None:
        assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr

    refused(tried("-i", "src", "-o", "out"), b"out: Permission denied. Nothing was changed there")
    refused(tried("-i", "src", "--in-place", "--force"), b"Permission denied. Nothing was changed")
    refused(tried("-i", "src", "-r", "reports"), b"-r reports: cannot write the reports: Permission denied")
    source.chmod(0o755)
    (source / "secret.py").write_text(SCRIPT)
    (source / "secret.py").chmod(0)
    (source / "secret.bin").write_text("x")
    (source / "secret.bin").chmod(0)
    done = tried("-i", "src", "-o", "mine/out")
    assert done.returncode == 2 and set(content(mine / "out")) == {"train.py", "part/words.txt"}
    assert b"secret.py: NPU000 unreadable, not converted: Permission denied" in done.stdout
    assert b"secret.bin: unreadable, and missing in mine/out" in done.stderr
    (source / "part").chmod(0)
    refused(tried("-i", "src", "-o", "mine/other"), b"src/part: Permission denied")
    source.chmod(0)
    refused(tried("-i", "src", "-o", "mine/other"), b"src: Permission denied")
    refused(tried("-i", "src/train.py"), b"src/train.py")
    assert [p.name for p in mine.iterdir()] == ["out"]


def test_folders_that_are_read_only_are_copied_as_they_are(open_source: pathlib.Path) -> None:
    source, top = open_source, open_source.parent
    for path in [top, source] + list(source.rglob("*")):
        if os.geteuid() == 0:
            os.chown(str(path), NOBODY, NOBODY)
        path.chmod(0o555 if path.is_dir() else 0o444)
    top.chmod(0o755)
    done = run_as_nobody(["-i", "src", "-o", "out"], top)
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE((top / "out").stat().st_mode) == stat.S_IMODE((top / "out" / "part").stat().st_mode) == 0o555
    assert (top / "out" / "train.py").read_text() == MIGRATED
    source.chmod(0o755)
    (source / "train.py").chmod(0o644)
    (source / "train.py").write_text(SCRIPT + "# new\n")
    done = run_as_nobody(["-i", "src", "-o", "out"], top)  # differs, and must not be replaced
    assert done.returncode == 2 and b"out has 1 file that differs" in done.stderr
    done = run_as_nobody(["-i", "src", "-o", "out", "--force"], top)  # and cannot be
    assert done.returncode == 2 and b"Permission denied" in done.stderr
    assert sorted(p.name for p in top.iterdir()) == ["out", "src"]
    assert (top / "out" / "train.py").read_text() == MIGRATED


@pytest.mark.parametrize(
    "more,words",
    [
        (["-o", "src"], "--in-place"),
        (["-o", "src/"], "--in-place"),
        (["-o", "link"], "--in-place"),
        (["-o", "src/../src/part"], "is inside the source"),
        (["-o", "link/new"], "is inside the source"),
        (["-o", "file"], "exists and is not a folder"),
        (["-o", "file/new"], "cannot write"),
        (["-o", "dangling"], "exists and is not a folder"),
        (["-o", "/proc/new"], "cannot write"),
        (["-o", "full"], "has 1 file that differs"),
        (["-o", "mixed", "--force"], "a folder has this name"),
        (["-o", "crossed", "--force"], "cannot write"),
        (["-o", "out", "-r", "file"], "is not a folder"),
        (["-o", "out", "-r", "file/new"], "is not a folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_target_that_cannot_be_one_has_one_answer_and_nothing_is_changed(
    more: list[str], words: str, source: pathlib.Path, monkeypatch, capsys
) -> None:
    top = source.parent
    monkeypatch.chdir(top)
    (top / "link").symlink_to("src")
    (top / "dangling").symlink_to("nowhere")
    (top / "file").write_text("mine\n")
    for folder in ("full", "mixed/train.py", "crossed"):
        (top / folder).mkdir(parents=True)
    (top / "full" / "train.py").write_text("mine\n")
    (top / "crossed" / "part").write_text("mine\n")
    before = content(top), sorted(str(p) for p in top.rglob("*"))
    assert main(["-i", "src"] + more) == 2
    error = capsys.readouterr().err
    assert words in error and len(error.splitlines()) == 1
    assert (content(top), sorted(str(p) for p in top.rglob("*"))) == before


def test_a_single_script_is_not_written_over_itself(source: pathlib.Path, capsys) -> None:
    for target in (source, source / "train.py"):
        assert main(["-i", str(source / "train.py"), "-o", str(target), "--force"]) == 2
        assert "is the source itself. Use --in-place" in capsys.readouterr().err
    assert (source / "train.py").read_text() == SCRIPT


def test_targets_behind_links_and_in_other_places(source: pathlib.Path, monkeypatch) -> None:
    top = source.parent
    monkeypatch.chdir(top)
    (top / "real").mkdir()
    (top / "link").symlink_to("real")
    assert main(["-i", "src", "-o", "link"]) == 0
    assert (top / "link").is_symlink() and (top / "real" / "train.py").read_text() == MIGRATED
    subprocess.run(["git", "init", "-q", "work"], check=True)
    assert main(["-i", "src", "-o", "work/migrated"]) == 0
    assert sorted(p.name for p in (top / "work").iterdir()) == [".git", "migrated"]


def test_hard_links_become_files_of_their_own(source: pathlib.Path) -> None:
    os.link(str(source / "train.py"), str(source / "same.py"))
    os.link(str(source / "train.py"), str(source.parent / "outside.py"))
    assert main(["-i", str(source), "-o", str(source.parent / "out")]) == 0
    assert main(["-i", str(source), "--in-place", "--force"]) == 0
    for folder in (source, source.parent / "out"):
        assert (folder / "same.py").read_text() == (folder / "train.py").read_text() == MIGRATED
    assert (source.parent / "outside.py").read_text() == SCRIPT


def test_links_in_a_source_are_unchanged_in_place(source: pathlib.Path) -> None:
    (source.parent / "outside.py").write_text(SCRIPT)
    (source / "link.py").symlink_to("../outside.py")
    (source / "inner.py").symlink_to("train.py")
    assert main(["-i", str(source), "--in-place", "--force"]) == 0
    assert (source / "link.py").is_symlink() and (source.parent / "outside.py").read_text() == SCRIPT
    assert (source / "inner.py").is_symlink() and (source / "inner.py").read_text() == MIGRATED


def test_the_owner_of_a_file_stays_the_owner(source: pathlib.Path) -> None:
    if os.geteuid() == 0:
        os.chown(str(source / "train.py"), NOBODY, NOBODY)
    before = (source / "train.py").stat()
    assert main(["-i", str(source), "--in-place", "--force"]) == 0
    after = (source / "train.py").stat()
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)


@pytest.mark.nightly
def test_a_file_of_100_megabytes_is_copied_in_bounded_memory_and_time(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    with open(str(source / "weights.py"), "wb") as stream:
        stream.write(b"import tensorflow as tf\nx = [\n")
        for _ in range(100):
            stream.write(b"1.0, 2.0,\n" * 100_000)
        stream.write(b"]\n")
    (source / "train.py").write_text("from weights import x\n" + SCRIPT)
    shutil.copy(str(source / "weights.py"), str(source / "data.bin"))
    code = (
        "import resource, sys\nfrom convert_tf2npu.main import main\ncode = main(sys.argv[1:])\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        # ru_maxrss counts the process that started this one, too
        "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "peak_mb = int(status['VmHWM'].split()[0]) // 1024\n"
        "print(peak_mb, round(used.ru_utime + used.ru_stime), file=sys.stderr)\nsys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "-i", "src", "-o", "out", "-r", "reports"],
        cwd=str(tmp_path),
        capture_output=True,
        env=dict(os.environ, PYTHONPATH=TOOLS),
    )
    assert done.returncode == 2
    assert (
        b"weights.py: NPU000" in done.stdout
        and b"the file has 100.0 MB, and the tool reads 2 MB at most" in done.stdout
    )
    memory_mb, time_s = map(int, done.stderr.split())
    assert memory_mb < 500 and time_s < 20, (memory_mb, time_s)
    assert (tmp_path / "out" / "weights.py").stat().st_size > 100_000_000
    assert b"npu_config_proto" in (tmp_path / "out" / "train.py").read_bytes()
    assert sum(p.stat().st_size for p in (tmp_path / "reports").iterdir()) < 5_000_000
    shutil.rmtree(str(tmp_path / "out"))


def _full_output() -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)


@pytest.mark.parametrize("more", [[], ["--check"], ["-v", "-o", "out"]], ids=" ".join)
def test_output_that_cannot_be_written_is_one_error(more: list[str], source: pathlib.Path) -> None:
    done = run(["-i", "src"] + more, source.parent, preexec_fn=_full_output)
    assert done.returncode == 2
    assert done.stderr == b"convert_tf2npu: error: output: No space left on device\n" or not more
    assert b"Traceback" not in done.stderr and b"No space left on device" in done.stderr


def test_a_source_that_vanishes_while_it_is_read_is_named(source: pathlib.Path, monkeypatch, capsys) -> None:
    import convert_tf2npu.engine.run as module

    real = module.read_tree

    def read_tree(path: str) -> Any:
        tree = real(path)
        (source / "train.py").unlink()
        return tree

    monkeypatch.setattr(module, "read_tree", read_tree)
    assert main(["-i", str(source), "-o", str(source.parent / "out")]) == 2
    assert "train.py: NPU000 unreadable, not converted: No such file or directory" in capsys.readouterr().out
