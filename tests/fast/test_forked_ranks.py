"""Ranks and runs that are forked from a process with TensorFlow: a script sees a new Python, and runs as in one."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from typing import Any, Callable

import pytest

from npu_shim import cli
from npu_shim.launching.fork_server import ForkServer
from npu_shim.rehearsal.preloaded_runs import preloaded
from npu_shim.rehearsal.running import Run

pytestmark = [pytest.mark.once, pytest.mark.slow]

ROOT = pathlib.Path(cli.__file__).resolve().parents[2]
# A library that notes what it reads when it is imported, and prints.
TENSORFLOW = """import os, sys
import helper_of_tensorflow
seen = {name: os.environ.get(name) for name in ("TF_CPP_MIN_LOG_LEVEL", "OMP_NUM_THREADS", "SET_IN_FUNCTION")}
os.environ["SET_BY_TENSORFLOW"] = "1"
process = os.getpid()
sys.stderr.write("import noise\\n")
"""
Launch = Callable[..., "Job"]


class Job:
    """The end of a job, and the logs of its ranks without the first line."""

    def __init__(self, folder: pathlib.Path, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.error = done.returncode, done.stderr
        self.logs = ["\n".join(path.read_text().splitlines()[1:]) for path in sorted((folder / "logs").glob("*.log"))]


_SET_BY_SCRIPTS = ("TF_CPP_MIN_LOG_LEVEL", "OMP_NUM_THREADS", "SET_IN_FUNCTION", "CUDA_VISIBLE_DEVICES")


@pytest.fixture
def environ(tmp_path: pathlib.Path) -> dict[str, str]:
    """Make a folder for scripts and a small library named tensorflow. Return the variables with which it is found."""
    library = tmp_path / "library"
    for name, text in ("tensorflow", TENSORFLOW), ("tensorflow/part", "name = __name__\n"):
        (library / name).mkdir(parents=True)
        (library / name / "__init__.py").write_text(text)
    (library / "helper_of_tensorflow.py").write_text("")
    (tmp_path / "scripts").mkdir()
    # The scripts set these; another test of this process may have set them, too.
    inherited = {name: value for name, value in os.environ.items() if name not in _SET_BY_SCRIPTS}
    return {**inherited, "PYTHONPATH": os.pathsep.join([str(library), str(ROOT), str(ROOT / "tools")])}


@pytest.fixture
def launch(tmp_path: pathlib.Path, environ: dict[str, str]) -> Launch:
    """Return a function that runs a script on two ranks, in a mode."""

    def start(script: str, *command: str, preload: bool = True, **env: str) -> Job:
        (tmp_path / "scripts" / "a.py").write_text(script)
        done = subprocess.run(
            [sys.executable, "-m", "npu_shim", "launch", "--ranks", "2", "--log-dir", "logs"]
            + ["--no-preload"] * (not preload)
            + list(command or ("scripts/a.py", "--x", "1")),
            cwd=str(tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            env={**environ, **env},
        )
        found = Job(tmp_path, done)
        for path in (tmp_path / "logs").glob("*.log"):
            path.unlink()
        return found

    return start


STATE = """from __future__ import annotations
import json, os, signal, sys, threading
before = sorted(sys.modules)
import tensorflow, tensorflow.part
import multiprocessing
def disposition(number):
    handler = signal.getsignal(number)
    return handler.__name__ if callable(handler) else str(handler)
print(json.dumps({
    "argv": sys.argv, "orig_argv": getattr(sys, "orig_argv", None), "name": __name__, "file": __file__,
    "doc": __doc__, "main": sorted(vars(sys.modules["__main__"])),
    "mp_main": sys.modules["__mp_main__"] is sys.modules["__main__"], "path": sys.path, "cwd": os.getcwd(),
    "before": [name for name in before if name.startswith(("tensorflow", "helper", "numpy"))],
    "signals": {str(number): disposition(number) for number in sorted(set(signal.Signals))},
    "leads": os.getpid() == os.getpgrp() == os.getsid(0), "parent": open(f"/proc/{os.getppid()}/cmdline").read().split("\\0")[1:4],
    "streams": [[s.name, s.encoding, s.errors, s.line_buffering, getattr(s, "write_through", None)]
                for s in (sys.stdin, sys.stdout, sys.stderr)],
    "read": sys.stdin.read(), "fds": sorted(os.listdir("/proc/self/fd")), "flags": list(sys.flags),
    "threads": [thread.name for thread in threading.enumerate()],
    "process": [multiprocessing.current_process().name, multiprocessing.parent_process() is None
                if hasattr(multiprocessing, "parent_process") else True],
    "environ": {name: value for name, value in os.environ.items() if name != "JOB_ID"},
    "spec": tensorflow.__spec__.origin, "loader": type(tensorflow.__spec__.loader).__name__,
    "finders": [getattr(finder, "__name__", type(finder).__name__) for finder in sys.meta_path],
    "parts": [tensorflow.part.name, "helper_of_tensorflow" in sys.modules], "umask": os.umask(0o22),
}, sort_keys=True))
"""


@pytest.mark.parametrize(
    "command",
    [("scripts/a.py", "--x", "1"), ("-m", "scripts.a", "-m", "2"), ("scripts", "3")],
    ids=["file", "module", "folder"],
)
def test_a_forked_rank_looks_like_a_new_python(
    command: tuple[str, ...], launch: Launch, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "scripts" / "__main__.py").write_text(STATE)
    new, forked = (launch(STATE, *command, preload=preload) for preload in (False, True))
    assert (new.code, forked.code) == (0, 0), new.error + forked.error
    assert "plain" not in new.error + forked.error
    for rank in range(2):
        lines = [job.logs[rank].splitlines() for job in (new, forked)]
        assert [line[0] for line in lines] == ["import noise"] * 2
        expected, found = (json.loads(line[1]) for line in lines)
        assert expected["parent"] == ["-m", "npu_shim", "launch"]
        assert found == expected


def test_ranks_share_the_import_and_not_their_random_numbers(launch: Launch) -> None:
    script = """import json, multiprocessing, os, random, sys, tempfile, uuid
import tensorflow
print(json.dumps({"process": tensorflow.process, "random": random.random(), "uuid": str(uuid.uuid4()),
                  "time": str(uuid.uuid1()), "file": next(tempfile._get_candidate_names()),
                  "key": multiprocessing.current_process().authkey.hex()}))
"""
    first, second = (json.loads(log.splitlines()[-1]) for log in launch(script).logs)
    assert first.pop("process") == second.pop("process")
    assert [name for name in first if first[name] == second[name]] == []


def test_output_of_the_import_is_where_the_script_imports(launch: Launch) -> None:
    job = launch("print('one', flush=True)\nimport tensorflow.part\nprint('two')\nimport tensorflow")
    assert job.logs == ["one\nimport noise\ntwo"] * 2


@pytest.mark.parametrize(
    "ending, code",
    [
        ("sys.exit(3)", 3),
        ("sys.exit('stopped')", 1),
        ("raise KeyError('x')", 1),
        ("raise KeyboardInterrupt", None),
        ("os._exit(9)", 9),
        ("os.kill(os.getpid(), signal.SIGSEGV)", 139),
        ("threading.Thread(target=lambda: (time.sleep(0.2), print('from a thread'))).start()", 0),
        ("import faulthandler; faulthandler.enable(); os.abort()", 134),
        ("print(list(multiprocessing.get_context('fork').Pool(2).map(str, [1, 2])))", 0),
        ("print(list(multiprocessing.get_context('spawn').Pool(1).map(str, [1, 2])))", 0),
    ],
)
def test_the_end_of_a_rank_is_that_of_a_new_python(ending: str, code: int | None, launch: Launch) -> None:
    script = (
        "import atexit, multiprocessing, os, signal, sys, threading, time\nimport tensorflow\n"
        "if __name__ == '__main__':\n"
        "    atexit.register(print, 'at exit')\n"
        f"    if os.environ['RANK_ID'] == '1':\n        sys.exit()\n    {ending}\n"
    )
    new, forked = (launch(script, preload=preload) for preload in (False, True))

    def text(job: Job) -> str:
        frames = r'  File "(.*/npu_shim/\S*|<string>)", line \d+ in \S+\n?'  # below those of the script, in a crash
        return re.sub(r"0x[0-9a-f]+", "", re.sub(frames, "", job.logs[0] + "\n")).strip()

    assert text(forked) == text(new)
    assert forked.code == new.code and code in (None, new.code)


# --- environment variables that a script sets ------------------------------------------
def seen(job: Job) -> list[dict[str, Any]]:
    assert job.code == 0, job.error
    return [json.loads(log.splitlines()[-1]) for log in job.logs]


SHOW = "import json\nprint(json.dumps([tensorflow.seen, tensorflow.process == os.getpid()]))\n"


@pytest.mark.parametrize(
    "text",
    [
        'os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"\n',
        'os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")\n',
        'if __name__ == "__main__":\n    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"\n',
        'import helper_of_tensorflow\nos.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"\n',
        'os.environ["OMP_NUM_THREADS"] = "1"\nos.environ["CUDA_VISIBLE_DEVICES"] = os.environ["RANK_ID"]\n',
    ],
)
def test_literal_variables_are_those_of_the_import(text: str, launch: Launch) -> None:
    script = "import os\n" + text + "import tensorflow\n" + SHOW
    new, forked = seen(launch(script, preload=False)), seen(launch(script))
    assert [values for values, _ in forked] == [values for values, _ in new]
    assert all(is_own for _, is_own in new) and not any(is_own for _, is_own in forked)


@pytest.mark.parametrize(
    "text",
    [
        'os.environ["OMP_NUM_THREADS"] = str(1 + 1)\n',
        'os.environ.update(OMP_NUM_THREADS="2")\n',
        'os.environ["OMP_NUM_" + "THREADS"] = "2"\n',
    ],
)
def test_computed_variables_need_plain_processes(text: str, launch: Launch) -> None:
    script = "import os\n" + text + "import tensorflow\n" + SHOW
    job = launch(script)
    assert "ranks start as plain processes: " in job.error and "a.py:2 sets environment variables before" in job.error
    assert seen(job) == seen(launch(script, preload=False))


@pytest.mark.parametrize(
    "text",
    [
        'def prepare():\n    os.environ["SET_IN_FUNCTION"] = "1"\nprepare()\n',
        'import helper_of_tensorflow\nos.environ["OMP_NUM_THREADS"] = "2"\n',
        'if os.environ["RANK_ID"] == "no":\n    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"\n',
        'def prepare():\n    os.chdir("scripts")\n    os.environ["SET_IN_FUNCTION"] = "1"\nprepare()\n',
        'os.makedirs("own", exist_ok=True)\nopen("own/helper_of_tensorflow.py", "w").close()\nimport sys\nsys.path.insert(0, "own")\n',
    ],
)
def test_a_wrong_prediction_starts_the_rank_again(text: str, launch: Launch) -> None:
    script = "import os\n" + text + "import tensorflow\n" + SHOW
    job = launch(script)
    assert seen(job) == seen(launch(script, preload=False))
    for log in job.logs:
        assert re.search(
            r"^npu-shim: this rank starts again as a plain process: (the script, or a module that it imports, sets \w+ before it imports \w+"
            r"|\S*own/helper_of_tensorflow.py in the search path of the script hides the module)",
            log,
            re.MULTILINE,
        ), log


# --- what is not forked ---------------------------------------------------------------
def is_own(job: Job) -> list[bool]:
    assert job.code == 0, job.error
    return ["True" in log.splitlines()[-1] for log in job.logs]


OWN = "import os, sys\nprint(getattr(sys.modules.get('tensorflow'), 'process', None) in (None, os.getpid()), os.getpid())\n"


def test_a_script_without_tensorflow_starts_as_new_pythons(launch: Launch, tmp_path: pathlib.Path) -> None:
    (tmp_path / "library" / "tensorflow" / "__init__.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')")
    assert is_own(launch("import os\n" + OWN)) == [True, True]
    assert not (tmp_path / "imported").exists()


def test_a_module_of_the_script_that_imports_tensorflow_is_found(launch: Launch, tmp_path: pathlib.Path) -> None:
    (tmp_path / "scripts" / "model").mkdir()
    (tmp_path / "scripts" / "model" / "__init__.py").write_text("from .layers import *\n")
    (tmp_path / "scripts" / "model" / "layers.py").write_text(
        "def build():\n    import tensorflow\n    return tensorflow\n"
    )
    assert is_own(launch("import model\nmodel.build()\n" + OWN)) == [False, False]


@pytest.mark.parametrize(
    "prepare, reason",
    [
        (
            lambda folder: (folder / "library" / "tensorflow" / "__init__.py").write_text("1 / 0"),
            "the import of TensorFlow fails with ZeroDivisionError",
        ),
        (
            lambda folder: (folder / "library" / "helper_of_tensorflow.py").write_text("import os\nos._exit(7)"),
            "the process that imports TensorFlow has ended",
        ),
        (
            lambda folder: (folder / "library" / "helper_of_tensorflow.py").write_text(
                "import threading, time\nthreading.Thread(target=time.sleep, args=[60], daemon=True).start()"
            ),
            "the import of TensorFlow starts 1 threads",
        ),
        (lambda folder: (folder / "scripts" / "helper_of_tensorflow.py").write_text(""), "TensorFlow imports "),
        (lambda folder: (folder / "scripts" / "json.py").write_text("dumps = str\n"), "json.py hides the module json"),
    ],
    ids=["import fails", "import ends", "import starts threads", "module of the script", "module of Python"],
)
def test_ranks_that_cannot_share_an_import(prepare: Any, reason: str, launch: Launch, tmp_path: pathlib.Path) -> None:
    prepare(tmp_path)
    job = launch("try:\n    import tensorflow\nexcept Exception:\n    pass\n" + OWN)
    assert re.search(f"ranks start as plain processes: .*{reason}", job.error)
    if "has ended" in reason:  # with its script
        assert job.code == 7
    else:
        assert is_own(job) == [True, True]


def test_ranks_bound_to_processors_are_plain(launch: Launch) -> None:
    job = launch("import tensorflow\n" + OWN, "--bind-cores", "scripts/a.py")
    assert "--bind-cores gives each rank its own processors" in job.error and is_own(job) == [True, True]


def test_a_job_that_ends_during_the_import(launch: Launch, tmp_path: pathlib.Path) -> None:
    (tmp_path / "library" / "helper_of_tensorflow.py").write_text(
        "import pathlib, time\npathlib.Path('importing').touch()\ntime.sleep(100)"
    )
    job = launch("import tensorflow", "--timeout", "1", "scripts/a.py")
    assert (job.code, job.logs) == (
        124,
        [],
    ) and "timeout after 1 s (--timeout): the ranks have not started" in job.error
    process = subprocess.Popen(
        [sys.executable, "-m", "npu_shim", "launch", "--ranks", "2", "scripts/a.py"],
        cwd=str(tmp_path),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "library"), str(ROOT)])},
        stderr=subprocess.PIPE,
    )
    (tmp_path / "importing").unlink()
    while not (tmp_path / "importing").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 143 and b"SIGTERM: the ranks have not started" in error


# --- runs of npu-shim verify -----------------------------------------------------------
def forked_and_new(script: str, tmp_path: pathlib.Path, environ: dict[str, str]) -> list[tuple[int, str]]:
    """Return exit code and output of a script as a fork and as a new Python, as verify starts its runs."""
    (tmp_path / "scripts" / "a.py").write_text(script)
    command, log, folder = ["scripts/a.py", "--x"], tmp_path / "log", str(tmp_path)
    server = ForkServer(["-m", "npu_shim"], environ, starts_session=False)
    try:
        assert server.wait(lambda: False) is None
        found = [
            (
                server.fork("this run", command, str(log), {**environ, "TMPDIR": folder}, folder).finish(60),
                log.read_text(),
            )
        ]
    finally:
        server.close()
    with open(log, "wb") as output:
        new = subprocess.run(
            [sys.executable, *command],
            env={**environ, "TMPDIR": folder},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    return [*found, (new.returncode, log.read_text())]


@pytest.mark.parametrize(
    "script",
    [
        STATE,
        "import tensorflow, tempfile, os\nprint(tempfile.gettempdir(), os.getpgrp(), os.getsid(0))\n",
        "import tensorflow, os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
        "import tensorflow\n1 / 0\n",
    ],
    ids=["state", "folder and group", "killed", "error"],
)
def test_a_forked_run_is_like_a_new_python(script: str, tmp_path: pathlib.Path, environ: dict[str, str]) -> None:
    forked, new = forked_and_new(script, tmp_path, {**environ, "PYTHONUNBUFFERED": "1"})
    frames = r'  File "(.*/npu_shim/\S*|<string>)", line \d+ in \S+\n?'
    assert forked == (new[0], re.sub(frames, "", new[1]))


def test_a_run_that_takes_too_long_is_killed(tmp_path: pathlib.Path, environ: dict[str, str]) -> None:
    script = tmp_path / "scripts" / "a.py"
    script.write_text("import time\ntime.sleep(100)\n")
    server = ForkServer(["-m", "npu_shim"], environ, starts_session=False)
    try:
        assert server.wait(lambda: False) is None
        forked = server.fork("this run", [str(script)], str(tmp_path / "log"), environ)
        with pytest.raises(subprocess.TimeoutExpired):
            forked.finish(0.2)
    finally:
        server.close()
    with pytest.raises(ProcessLookupError):
        os.kill(forked.pid, 0)


@pytest.mark.parametrize(
    "texts, shares",
    [
        (["import tensorflow"], True),
        (["import os\nos.environ['TF_X'] = '1'\nimport tensorflow"] * 2, True),
        (["import os\nos.environ['TF_X'] = '1'\nimport tensorflow", "import tensorflow"], False),
        (["import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport tensorflow"], False),
        (["import os\nos.environ['TF_X'] = str(1)\nimport tensorflow"], False),
        (["print(1)"], False),
    ],
)
def test_runs_share_an_import_that_is_the_same_for_all(
    texts: list[str], shares: bool, tmp_path: pathlib.Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    runs = []
    for number, text in enumerate(texts):
        path = tmp_path / "scripts" / f"{number}.py"
        path.write_text(text)
        runs.append(Run("original", str(path), [], str(tmp_path / str(number))))
    with preloaded(runs) as given:
        assert [run.server is not None for run in given] == [shares] * len(runs)
    with preloaded([*runs, Run("migrated", runs[0].script, [], str(tmp_path / "ranks"), ranks=2)]) as given:
        assert {run.server for run in given} == {None}
