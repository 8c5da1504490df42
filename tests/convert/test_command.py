"""The command: what it writes, what it says, how it ends."""

from __future__ import annotations

import io
import json
import os
import pathlib
import re
import resource
import stat
import subprocess
import sys
from typing import Any

import convert_tf2npu.files.copying
import convert_tf2npu.project.source_files
import pytest
from convert_tf2npu.cli.progress import Progress
from convert_tf2npu.main import main

SCRIPT = "import tensorflow as tf\n\nwith tf.Session() as sess:\n    sess.run(op)\n"
MIGRATED = (
    "import tensorflow as tf\nfrom npu_shim.npu_init import *\n\n"
    "with tf.Session(config=npu_config_proto()) as sess:\n    sess.run(op)\n"
)
OTHER = "import requests\n\nwith requests.Session() as s:\n    s.get(url)\n"
PYTHON2 = 'import tensorflow as tf\nprint "loss", tf.Session().run(loss)\n'


def make(folder: pathlib.Path, files: dict[str, str]) -> pathlib.Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
    return folder


@pytest.fixture
def project(tmp_path: pathlib.Path) -> pathlib.Path:
    return make(tmp_path / "src", {"train.py": SCRIPT, "web.py": OTHER, "data/words.txt": "a\n"})


def content(folder: pathlib.Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_out_is_the_whole_tree_with_the_scripts_migrated(project, tmp_path, capsys) -> None:
    assert main(["-i", str(project), "-o", str(tmp_path / "out")]) == 0
    assert content(tmp_path / "out") == {
        "train.py": MIGRATED.encode(),
        "web.py": OTHER.encode(),
        os.path.join("data", "words.txt"): b"a\n",
    }
    assert "2 Python files, 1 changed; 1 rewrite, 0 places need a manual change." in capsys.readouterr().out


def test_without_out_a_diff_is_printed_and_nothing_written(project, capsys) -> None:
    before = content(project)
    assert main(["-i", str(project)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("--- a/train.py\n+++ b/train.py\n@@")
    assert "+with tf.Session(config=npu_config_proto()) as sess:\n" in out
    assert "1 changed" in err
    assert content(project) == before


def test_the_diff_applies(project, tmp_path, capfdbinary) -> None:
    (project / "crlf.py").write_bytes(SCRIPT.replace("\n", "\r\n").rstrip().encode())
    assert main(["-i", str(project)]) == 0
    out = capfdbinary.readouterr().out
    subprocess.run(["git", "apply", "-p1", "-"], input=out, cwd=str(project), check=True)
    assert (project / "train.py").read_bytes() == MIGRATED.encode()
    assert (project / "crlf.py").read_bytes() == MIGRATED.replace("\n", "\r\n").rstrip().encode()


def test_python_2_is_copied_named_and_does_not_stop_the_rest(project, tmp_path, capsys) -> None:
    make(project, {"old/legacy.py": PYTHON2})
    assert main(["-i", str(project), "-o", str(tmp_path / "out")]) == 2
    found = content(tmp_path / "out")
    assert found[os.path.join("old", "legacy.py")] == PYTHON2.encode()
    assert found["train.py"] == MIGRATED.encode()
    out = capsys.readouterr().out
    assert "legacy.py:2:" in out and "unreadable, not converted: " in out


def test_modes_and_links_survive(project, tmp_path) -> None:
    (project / "train.py").chmod(0o755)
    (project / "web.py").chmod(0o640)
    (project / "link.py").symlink_to("train.py")
    (project / "dangling.py").symlink_to("nowhere.py")
    (project / "loop").symlink_to(".")
    assert main(["-i", str(project), "-o", str(tmp_path / "out")]) == 0
    out = tmp_path / "out"
    assert stat.S_IMODE((out / "train.py").stat().st_mode) == 0o755
    assert stat.S_IMODE((out / "web.py").stat().st_mode) == 0o640
    assert os.readlink(str(out / "link.py")) == "train.py"
    assert os.readlink(str(out / "dangling.py")) == "nowhere.py"
    assert os.readlink(str(out / "loop")) == "."


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["-i", "missing"], "file or folder not found: missing"),
        (["-i", "src", "-o", "."], "contains the source"),
        (["--explain", "NPU999"], "no rule NPU999"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_bad_input_gets_one_clear_error_and_exit_code_2(
    arguments, words, project, tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    before = content(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error and len(error.strip().splitlines()) == 1
    assert content(tmp_path) == before


@pytest.mark.parametrize(
    "arguments,words",
    [
        ([], "Give a script, a notebook or a folder"),
        (["-i", "a", "-o", "b", "--check"], "exclude each other"),
        (["-i", "a", "-j", "0"], "is not a number of processes. Give 1 to 1024"),
        (["-i", "a", "-j", "100000"], "'100000' is not a number of processes. Give 1 to 1024"),
        (["-i", "a", "b"], "two inputs, b and -i a. Give one"),
        (["-i", "a", "--select", "NPU9"], "there is no rule NPU9. Did you mean NPU109, NPU119, NPU209?"),
        (["-i", "a", "--ignore", "gelu"], "there is no rule GELU. List the rules with --list-rules"),
        (["-i", "a", "--nonsense"], "unknown option '--nonsense'. List the options with --help"),
        (["-i", "a", "--outptu=b"], "unknown option '--outptu'. Did you mean --output?"),
        (["-i", "a", "-d", "horovd"], "invalid choice: 'horovd'. Did you mean horovod?"),
        (["-i", "a", "-d", "x"], "invalid choice: 'x' (choose from 'auto', 'horovod', 'tf_strategy')"),
        (["a", "b"], "unexpected argument 'b'. Give one script, notebook or folder"),
        (["-i", "a", "-q", "-v"], "-q and -v exclude each other"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_wrong_usage_exits_with_2(arguments, words, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_check_exits_with_1_when_something_would_change_or_was_found(project, tmp_path) -> None:
    before = content(project)
    assert main(["-i", str(project), "--check"]) == 1
    assert content(project) == before
    make(project, {"found.py": "import tensorflow as tf\ntf.Session(*options)\n"})
    assert main(["-i", str(project / "found.py"), "--check"]) == 1
    assert main(["-i", str(project / "web.py"), "--check"]) == 0


def test_in_place_refuses_uncommitted_changes(project, capsys) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b.example"] + list(arguments),
            cwd=str(project),
            check=True,
            stdout=subprocess.DEVNULL,
        )

    git("init", "-q")
    git("add", ".")
    assert main(["-i", str(project), "--in-place"]) == 2
    assert "has uncommitted changes" in capsys.readouterr().err
    assert (project / "train.py").read_text() == SCRIPT
    git("commit", "-qm", "start")
    (project / "train.py").chmod(0o755)
    git("commit", "-qam", "run bit")
    assert main(["-i", str(project), "--in-place"]) == 0
    assert (project / "train.py").read_text() == MIGRATED
    assert (project / "train.py").stat().st_mode & 0o111
    (project / "train.py").write_text(SCRIPT)
    assert main(["-i", str(project), "--in-place", "--force"]) == 0
    assert (project / "train.py").read_text() == MIGRATED


def test_version_control_and_byte_code_stay_out(project, tmp_path, capsys) -> None:
    make(project, {".git/config": "", "__pycache__/a.pyc": "", "env/pyvenv.cfg": "", "env/a.py": SCRIPT})
    assert main(["-i", str(project), "-o", str(tmp_path / "out")]) == 0
    assert set(content(tmp_path / "out")) == {"train.py", "web.py", os.path.join("data", "words.txt")}
    assert "not part of the migration: .git, env" in capsys.readouterr().out


def test_rules_can_be_chosen_and_places_excepted(tmp_path, capsys) -> None:
    text = (
        "import tensorflow as tf\nwith tf.device('/gpu:0'):\n    tf.Session()\n"
        "    tf.Session()  # npu: ignore[NPU101]\n    tf.Session()  # npu: ignore\n"
    )
    script = make(tmp_path, {"a.py": text}) / "a.py"
    assert main(["-i", str(script), "--select", "NPU110"]) == 0
    out = capsys.readouterr().out
    assert "'/cpu:0'" in out and "npu_config_proto" not in out
    assert main(["-i", str(script), "--ignore", "npu110"]) == 0
    out = capsys.readouterr().out
    assert "/cpu:0" not in out and out.count("npu_config_proto()") == 1


def test_an_empty_folder_says_so(tmp_path, capsys) -> None:
    (tmp_path / "src").mkdir()
    for arguments in ([], ["--check"], ["-q"], ["-o", str(tmp_path / "out")]):
        assert main(["-i", str(tmp_path / "src"), *arguments]) == 0
        out, err = capsys.readouterr()
        assert out + err == f"no Python file or notebook in {tmp_path / 'src'}. Give the folder of the scripts.\n"


def test_quiet_prints_findings_only(project, tmp_path, capsys) -> None:
    assert main(["-i", str(project), "-o", str(tmp_path / "out"), "-r", str(tmp_path / "r"), "-q", "-c"]) == 0
    assert capsys.readouterr() == ("", "")
    make(project, {"found.py": "import tensorflow as tf\ntf.Session(*options)\n"})
    assert main(["-i", str(project), "-q"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("--- a/train.py\n") and err.startswith(str(project / "found.py:2:1: NPU101"))
    assert err.count("\n") == 1


@pytest.mark.parametrize("bad", ["file", "file/new", "/proc/new"])
@pytest.mark.parametrize("option", ["-o", "-r"])
def test_an_output_that_cannot_be_written_ends_before_the_conversion(
    option, bad, project, tmp_path, monkeypatch, capsys
) -> None:
    def convert(*arguments: Any, **options: Any) -> None:
        raise AssertionError("it converts")

    monkeypatch.setattr("convert_tf2npu.cli.commands.convert_source", convert)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert main(["-i", "src", option, bad]) == 2
    error = capsys.readouterr().err
    assert bad in error and error.count("\n") == 1


def test_source_without_a_flag(project, tmp_path, capsys) -> None:
    assert main([str(project), "-o", str(tmp_path / "a")]) == main(["-i", str(project), "-o", str(tmp_path / "b")]) == 0
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_version(capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"convert_tf2npu {convert_tf2npu.__version__}\n"


def test_a_finding_at_several_places_is_one_line_unless_verbose(tmp_path, capsys) -> None:
    text = "import tensorflow as tf\n" + "with tf.device(chosen()):\n    pass\n" * 13
    script = str(make(tmp_path, {"a.py": text}) / "a.py")
    reports = str(tmp_path / "reports")
    places = [f"{script}:{line}:6: NPU110" for line in range(2, 28, 2)]
    assert main([script, "-r", reports]) == 0
    shown = [line for line in capsys.readouterr().err.splitlines() if "NPU110" in line]
    assert len(shown) == 1 and shown[0].startswith(places[0]) and "(and in 12 other places, which -v lists)" in shown[0]
    assert main([script, "-v"]) == 0
    shown = [line for line in capsys.readouterr().err.splitlines() if "NPU110" in line]
    assert [line[: len(place)] for line, place in zip(shown, places)] == places and len(shown) == 13
    found = json.loads((tmp_path / "reports" / "report.json").read_text())
    assert [d["line"] for d in found["files"][0]["diagnostics"]] == list(range(2, 28, 2))


def test_a_suppression_comment_holds_for_its_codes_only(tmp_path, capsys) -> None:
    text = "import tensorflow as tf\ntf.Session()  # npu: ignore[NPU102, NPU110]\n"
    script = make(tmp_path, {"a.py": text}) / "a.py"
    assert main(["-i", str(script)]) == 0
    assert capsys.readouterr().out.count("npu_config_proto()") == 1


def test_rules_are_listed_and_explained(capsys) -> None:
    assert main(["--list-rules"]) == 0
    assert "NPU101  Give every session the NPU configuration." in capsys.readouterr().out
    assert main(["--explain", "npu108"]) == 0
    assert "x/2 (1 + tanh(" in capsys.readouterr().out


def test_the_command_runs_by_its_path_without_tensorflow(repo_root, project, tmp_path) -> None:
    tool = repo_root / "tools" / "convert_tf2npu" / "main.py"
    done = subprocess.run(
        [sys.executable, "-S", "-X", "importtime", str(tool), "-i", str(project), "-o", str(tmp_path / "out")],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        cwd=str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    for package in (b"tensorflow", b"numpy", b"absl", b"google"):
        assert b"| " + package not in done.stderr
    assert (tmp_path / "out" / "train.py").read_text() == MIGRATED


def run(arguments: list[str], folder: pathlib.Path, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own."""
    tools = str(pathlib.Path(convert_tf2npu.__file__).parent.parent)
    return subprocess.run(
        [sys.executable, "-m", "convert_tf2npu.main"] + arguments,
        cwd=str(folder),
        capture_output=True,
        env=dict(os.environ, PYTHONPATH=tools),
        **more,
    )


def test_standard_input_goes_migrated_to_standard_output(tmp_path) -> None:
    done = run(["-i", "-", "-v"], tmp_path, input=SCRIPT.replace("\n", "\r\n").encode())
    assert done.returncode == 0 and done.stdout == MIGRATED.replace("\n", "\r\n").encode()
    assert b"<stdin>:3:6: NPU101 " in done.stderr and b"1 rewritten" in done.stderr
    same = run(["-i", "-"], tmp_path, input=OTHER.encode())
    assert (same.returncode, same.stdout) == (0, OTHER.encode())


def test_notebooks_are_part_of_a_folder(project, tmp_path, capsys) -> None:
    def cells(*sources: str) -> str:
        return json.dumps({"cells": [{"cell_type": "code", "source": s} for s in sources]})

    make(
        project,
        {
            "a.ipynb": cells("from compat import tf", "tf.Session()"),
            "b.ipynb": '{"cells": [',
            "compat.py": "import tensorflow as tf\n",
            ".ipynb_checkpoints/a.ipynb": "{}",
        },
    )
    assert main(["-i", str(project), "-o", str(tmp_path / "out")]) == 2
    found = content(tmp_path / "out")
    assert found["a.ipynb"].decode() == cells(
        "from compat import tf\nfrom npu_shim.npu_init import npu_config_proto", "tf.Session(config=npu_config_proto())"
    )
    assert found["b.ipynb"] == b'{"cells": ['
    out = capsys.readouterr().out
    assert "b.ipynb:1:12: NPU000" in out and "not JSON" in out
    assert "not part of the migration: .ipynb_checkpoints" in out
    assert main(["-i", str(project / "a.ipynb"), "-o", str(tmp_path / "new" / "c.ipynb")]) == 0
    assert (tmp_path / "new" / "c.ipynb").exists()


def test_calls_are_counted_by_what_becomes_of_them(project, capsys) -> None:
    make(
        project, {"a.py": 'import tensorflow as tf\nx = tf.constant(tf.ones(1))\ntf.Session(**kw)\nprint(open("a"))\n'}
    )
    assert main(["-i", str(project), "--check"]) == 1
    assert "4 TensorFlow calls in 2 files: 2 fine, 1 rewritten, 1 needs a manual change." in capsys.readouterr().out


def test_command_lines_of_the_vendors_tool_work(project, tmp_path, capsys) -> None:
    assert (
        main(
            [
                "-i",
                str(project),
                "-o",
                str(tmp_path / "out"),
                "-r",
                str(tmp_path / "report"),
                "-m",
                str(project / "train.py"),
                "-c",
                "-l",
                "list.xlsx",
                "-d",
                "horovod",
            ]
        )
        == 0
    )
    assert (tmp_path / "out" / "train.py").read_text() == MIGRATED
    out = capsys.readouterr().out
    assert "-m: " in out and "-c: " in out and "-l: the list is ignored" in out


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["-m", "nowhere.py"], "file not found: nowhere.py. Give the entry script of src to -m"),
        (["-m", "other.py"], "the file is not in"),
        (["-d", "nccl"], "invalid choice"),
        (["-i", "-", "-o", "x"], "-o cannot be combined with -i -"),
        (["-i", "-", "-r", "x"], "-r cannot be combined with -i -"),
        (["--exclude", "a", "--jobs", "x"], "is not a number of processes. Give 1 to 1024"),
    ],
    ids=" ".join,
)
def test_a_missing_source_is_named(arguments, words, project, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path, {"other.py": ""})
    before = content(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["-i", "src"] + arguments)
    assert ended.value.code == 2 and words in capsys.readouterr().err
    assert content(tmp_path) == before


def test_a_bar_is_drawn_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, kind, shown in (
        (Terminal(), "xterm", True),
        (Terminal(), "dumb", False),
        (io.StringIO(), "xterm", False),
    ):
        monkeypatch.setenv("TERM", kind)
        progress = Progress(stream)
        progress._next_s = 0.0
        progress.show(1, 4)
        progress.close()
        assert ("[#######.......................] 1 of 4 files" in stream.getvalue()) is shown
        assert stream.getvalue().endswith("\r\x1b[K") is shown
        assert "\n" not in stream.getvalue()


def test_a_full_disk_leaves_nothing(project, tmp_path) -> None:
    make(project, {"z.bin": "x" * 200000})

    def limit() -> None:  # a file that grows beyond this is an error of the kind that a full disk is
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

    before = content(tmp_path)
    for out in ("out", "new/deep/out"):
        done = run(["-i", "src", "-o", out], tmp_path, preexec_fn=limit)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
        assert b"File too large" in done.stderr
    assert content(tmp_path) == before
    assert [p.name for p in tmp_path.iterdir()] == ["src"]


def test_a_full_disk_leaves_reports_and_sources_alone(project, tmp_path) -> None:
    make(project, {"train.py": SCRIPT + f"x = 1  # {'y' * 60000}\n", "web2.py": SCRIPT})

    before = content(tmp_path)
    for arguments, most in ((["--in-place"], 60000), (["--check", "-r", "reports"], 5000)):
        done = run(
            ["-i", "src"] + arguments,
            tmp_path,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
        )
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, arguments
        assert content(tmp_path) == before


@pytest.mark.parametrize("force", [False, True], ids=["new folder", "folder with files"])
def test_a_crash_in_the_middle_leaves_everything_as_it_was(force, project, tmp_path, monkeypatch) -> None:
    if force:
        make(tmp_path / "out", {"data/words.txt": "mine\n", "web.py": "mine\n", "keep": ""})
    before = content(tmp_path)
    real, calls = os.replace, []

    def replace(old: str, new: str) -> None:
        calls.append(new)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(os, "rename", replace)
    calls += [] if force else ["so that the first one fails"]
    assert main(["-i", str(project), "-o", str(tmp_path / "out")] + ["--force"] * force) == 130
    assert content(tmp_path) == before


def test_a_crash_in_the_middle_of_changing_in_place_changes_nothing(project, tmp_path, monkeypatch) -> None:
    make(project, {"a.py": SCRIPT, "b.py": SCRIPT})
    before = content(tmp_path)
    real, calls = os.replace, []

    def replace(old: str, new: str) -> None:
        calls.append(new)
        if len(calls) == 3:
            raise OSError(5, "Input/output error", new)
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    assert main(["-i", str(project), "--in-place", "--force"]) == 2
    assert content(tmp_path) == before


def test_a_run_that_is_ended_removes_its_unfinished_files(project, tmp_path) -> None:
    for number in range(3):
        os.mkfifo(str(project / (f"pipe{number}")))
    make(project, {"z.py": ""})
    tools = str(pathlib.Path(convert_tf2npu.__file__).parent.parent)
    code = (
        "import os, signal, sys\nfrom convert_tf2npu import main; from convert_tf2npu.files import writer\n"
        "write = writer.build_copy\n"
        "def ended(*a):\n    write(*a)\n    os.kill(os.getpid(), signal.SIGTERM)\n"
        "writer.build_copy = ended\n"
        'sys.exit(main.main(["-i", "src", "-o", "out"]))\n'
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=str(tmp_path), env=dict(os.environ, PYTHONPATH=tools))
    assert done.returncode == 143
    assert [p.name for p in tmp_path.iterdir()] == ["src"]


def test_a_file_that_cannot_be_read_is_named_and_missing(project, tmp_path, monkeypatch, capsys) -> None:
    unreadable = ("web.py", "words.txt")

    def no_open(path: Any, *arguments: Any, **more: Any) -> Any:
        if str(path).endswith(unreadable):
            raise PermissionError(13, "Permission denied", str(path))
        return open(path, *arguments, **more)

    for module in (convert_tf2npu.project.source_files, convert_tf2npu.files.copying):
        monkeypatch.setattr(module, "open", no_open, raising=False)
    assert main(["-i", str(project), "-o", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()
    assert "web.py: NPU000 unreadable, not converted: Permission denied" in out
    assert "words.txt: unreadable, and missing in " in err and "web.py: unreadable" in err
    assert set(content(tmp_path / "out")) == {"train.py"}
    unreadable = ("words.txt",)
    assert main(["-i", str(project), "-o", str(tmp_path / "other"), "-r", str(tmp_path / "reports")]) == 2
    (invocation,) = json.loads((tmp_path / "reports" / "report.sarif").read_text())["runs"][0]["invocations"]
    assert invocation["exitCode"] == 2


def test_a_link_to_a_script_is_followed_when_it_is_named(project, tmp_path) -> None:
    (tmp_path / "link.py").symlink_to(project / "train.py")
    (tmp_path / "web.py").symlink_to(project / "web.py")
    assert main(["-i", str(tmp_path / "web.py"), "-o", str(tmp_path / "out")]) == 0
    assert not (tmp_path / "out" / "web.py").is_symlink()
    assert main(["-i", str(tmp_path / "link.py"), "--in-place", "--force"]) == 0
    assert (tmp_path / "link.py").is_symlink()
    assert (project / "train.py").read_text() == MIGRATED


def test_links_that_lead_to_themselves_end_in_one_answer(tmp_path, capsys) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert main(["-i", str(tmp_path / "loop")]) == 2
    assert "symbolic links" in capsys.readouterr().err


def test_the_pre_commit_hook_runs_as_it_is_written(repo_root, project, tmp_path) -> None:
    hook = (repo_root / ".pre-commit-hooks.yaml").read_text()
    entry = re.search(r"^  entry: (.*)$", hook, re.MULTILINE).group(1).split()
    arguments = re.search(r"^  args: \[(.*)\]$", hook, re.MULTILINE).group(1).split(", ")
    assert "language: script" in hook and os.access(str(repo_root / entry[0]), os.X_OK)
    command = [sys.executable, str(repo_root / entry[0])] + entry[1:] + arguments
    assert subprocess.run(command, cwd=str(project), stdout=subprocess.PIPE).returncode == 1
    (project / "train.py").write_text(MIGRATED)
    assert subprocess.run(command, cwd=str(project), stdout=subprocess.PIPE).returncode == 0


@pytest.mark.once
@pytest.mark.parametrize("shows", [[], ["--explain", "NPU109"]], ids=["diff", "explanation"])
def test_a_reader_that_stops_early_gets_no_traceback(project, shows: list[str]) -> None:
    make(project, {f"a{n}.py": SCRIPT * 200 for n in range(20)})
    tools = str(pathlib.Path(convert_tf2npu.__file__).parent.parent)
    process = subprocess.Popen(
        [sys.executable, "-m", "convert_tf2npu.main", *(shows or ["-i", str(project)])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ, PYTHONPATH=tools),
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    # an explanation fits into the pipe, and may be written before its reader stops
    assert process.wait() in ((0, 141) if shows else (141,)) and b"Traceback" not in error
