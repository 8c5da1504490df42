"""``npu-shim run`` runs the output of the migration tool for the script's own files, and no others."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import zipfile
from typing import Any, Callable, Dict

import pytest

pytestmark = pytest.mark.slow

# Prints the device that it gets: /cpu:0 where the file is migrated.
PRINTS = 'import tensorflow as tf\nwith tf.device("/gpu:0") as name: print(__name__, name)\n'

Make = Callable[[Dict[str, str]], Any]


def test_the_script_and_its_imports_run_migrated(project: Make) -> None:
    done = project(
        {
            "train.py": PRINTS + "import model.net\nfrom model import data",
            "model/__init__.py": "",
            "model/net.py": PRINTS,
            "model/data.py": PRINTS,
            "unused.py": PRINTS,
        }
    ).run("train.py")
    assert done.out == "__main__ /cpu:0\nmodel.net /cpu:0\nmodel.data /cpu:0\n"
    assert done.said == ["npu-shim run: 3 rewrites in 3 files. List them with npu-shim run -v"]


@pytest.mark.once
def test_quiet_prints_no_line_about_the_conversion(project: Make) -> None:
    made = project({"train.py": PRINTS, "bad.py": 'print "x"\n'})
    done = made.run("-q", "train.py")
    assert (done.out, done.said) == ("__main__ /cpu:0\n", [])


def test_the_type_of_a_name_can_depend_on_another_file(project: Make) -> None:
    done = project(
        {
            "train.py": 'from compat import t\nwith t.device("/gpu:0") as name: print(name)',
            "compat.py": "import tensorflow as t\n",
        }
    ).run("train.py")
    assert done.out == "/cpu:0\n"


@pytest.mark.once
@pytest.mark.parametrize("library", ["env/lib/python3/site-packages", "env", "conda/lib"])
def test_libraries_below_the_folder_are_not_converted(library: str, project: Make) -> None:
    done = project(
        {
            "train.py": f"import sys\nsys.path.append({library!r})\n{PRINTS}import lib, own",
            "own.py": PRINTS,
            library + "/lib.py": PRINTS,
            "env/pyvenv.cfg": "",
            "conda/conda-meta/history": "",
        }
    ).run("train.py")
    assert done.out == "__main__ /cpu:0\nlib /gpu:0\nown /cpu:0\n"


@pytest.mark.once
def test_files_outside_the_folder_are_converted_only_with_input(project: Make) -> None:
    made = project(
        {"scripts/train.py": 'import sys; sys.path.append("shared")\n' + PRINTS + "import lib", "shared/lib.py": PRINTS}
    )
    assert made.run("scripts/train.py").out == "__main__ /cpu:0\nlib /gpu:0\n"
    assert made.run("-i", ".", "scripts/train.py").out == "__main__ /cpu:0\nlib /cpu:0\n"


@pytest.mark.once
def test_a_script_in_a_package_uses_the_folder_of_the_package(project: Make) -> None:
    made = project(
        {
            "top/__init__.py": "",
            "top/bin/__init__.py": "",
            "top/bin/train.py": PRINTS + "import top.net",
            "top/net.py": PRINTS,
        }
    )
    assert made.run("-m", "top.bin.train").out == "__main__ /cpu:0\ntop.net /cpu:0\n"
    assert made.run("top/bin/train.py", cwd=made.root, PYTHONPATH=f"{made.root}:{made._path}").out == (
        "__main__ /cpu:0\ntop.net /cpu:0\n"
    )


@pytest.mark.once
def test_only_the_package_of_an_installed_module_is_converted(project: Make) -> None:
    made = project(
        {
            "site-packages/one/__init__.py": "",
            "site-packages/one/train.py": PRINTS + "import one.net, two",
            "site-packages/one/net.py": PRINTS,
            "site-packages/two.py": PRINTS,
        }
    )
    done = made.run("-m", "one.train", PYTHONPATH="site-packages:" + made._path)
    assert done.out == "__main__ /cpu:0\none.net /cpu:0\ntwo /gpu:0\n"


@pytest.mark.once
def test_a_module_imported_by_name_is_converted_and_reported_at_its_import(project: Make) -> None:
    done = project(
        {"train.py": 'import importlib\nimportlib.import_module("models.net")\n', "models/net.py": PRINTS}
    ).run("train.py")
    assert done.out == "models.net /cpu:0\n"
    assert done.said[0] == "npu-shim run: nothing to rewrite in 1 file"
    assert done.said[1].startswith("npu-shim run: 1 rewrite, 0 findings in ")
    assert done.said[1].endswith("models/net.py, converted at its import")


@pytest.mark.once
def test_a_module_of_a_folder_that_the_script_adds_is_read_with_its_imports(project: Make) -> None:
    done = project(
        {
            "train.py": 'import sys; sys.path.append("more")\nimport net',
            "more/net.py": 'from names import t\nwith t.device("/gpu:0") as name: print(name)\n',
            "more/names.py": "import tensorflow as t\n",
        }
    ).run("train.py")
    assert done.out == "/cpu:0\n"
    assert [line.rpartition("/")[2] for line in done.said[1:]] == ["net.py, converted at its import"]


@pytest.mark.once
def test_a_large_folder_is_not_read(project: Make) -> None:
    """A FIFO in it would be waited for without end."""
    import os

    made = project({"train.py": PRINTS + "import model", "model.py": PRINTS})
    os.mkfifo(str(made.root / "other.py"))
    (made.root / "deep").mkdir()
    os.mkfifo(str(made.root / "deep" / "__init__.py"))
    assert made.run("train.py").said == ["npu-shim run: 2 rewrites in 2 files. List them with npu-shim run -v"]


@pytest.mark.once
def test_verbose_lists_each_rewrite_and_finding(project: Make) -> None:
    done = project({"train.py": PRINTS + "y = tf.where([True])\n"}).run("-v", "train.py")
    assert [line.split(" ")[:2] for line in done.err.splitlines()[:2]] == [
        ["train.py:2:6:", "NPU110"],
        ["train.py:3:5:", "NPU230"],
    ]
    assert done.said == ["npu-shim run: 1 rewrite in 1 file, 1 finding"]


@pytest.mark.once
def test_unreadable_files_are_reported(project: Make) -> None:
    done = project(
        {
            "train.py": PRINTS + 'try:\n    import old\nexcept SyntaxError:\n    print("as ever")',
            "old.py": 'import tensorflow\nprint "2"\n',
        }
    ).run("train.py")
    assert done.out == "__main__ /cpu:0\nas ever\n"
    assert done.said == [
        "npu-shim run: 1 rewrite in 1 file, 1 file cannot be read and is not converted. List them with npu-shim run -v"
    ]


@pytest.mark.once
@pytest.mark.parametrize(
    "arguments, files",
    [
        (["--ignore", "NPU110", "train.py"], {}),
        (["--select", "NPU101", "train.py"], {}),
        (["train.py"], {"pyproject.toml": '[tool.convert_tf2npu]\nignore = ["NPU110"]\n'}),
        (["train.py"], {"pyproject.toml": '[tool.convert_tf2npu]\nexclude = ["tr*.py"]\n'}),
    ],
)
def test_the_tools_options_for_rules_and_files_apply(arguments: Any, files: Any, project: Make) -> None:
    made = project({"train.py": PRINTS, **files})
    assert made.run(*arguments).out == "__main__ /gpu:0\n"


@pytest.mark.once
@pytest.mark.parametrize(
    "text, code",
    [
        ("def f():\n    import horovod.tensorflow as hvd\n", "NPU301"),
        ("def f():\n    return tf.contrib.distribute.MirroredStrategy()\n", "NPU302"),
        ("def f(loss):\n    return tf.train.AdamOptimizer().minimize(loss)\n", None),
    ],
)
def test_auto_converts_the_distributed_training_that_the_program_has(text: str, code: str, project: Make) -> None:
    listed = project({"train.py": "import tensorflow as tf\n" + text}).run("-v", "-d", "auto", "train.py").err
    assert [line.split()[1] for line in listed.splitlines() if line.startswith("train.py:")] == [code] * bool(code)


@pytest.mark.once
def test_names_of_tensorflow_1_are_lifted_and_the_entry_script_disables_v2_behavior(project: Make) -> None:
    done = project(
        {
            "train.py": "import tensorflow as tf\nimport net\nx = tf.placeholder(tf.float32)\n",
            "net.py": "import tensorflow as tf\ndef f(): return tf.placeholder(tf.float32)\n",
        }
    ).run("-v", "--compat-v1", "train.py")
    listed = [line for line in done.err.splitlines() if line.startswith(("train.py:", "net.py:"))]
    assert [line.split(":")[0] for line in listed if "TensorFlow 2 behavior disabled" in line] == ["train.py"]
    assert {line.split(":")[0] for line in listed if "imported from tf.compat.v1" in line} == {"train.py", "net.py"}


def test_no_bytecode_is_written_or_loaded_for_migrated_code(project: Make) -> None:
    made = project({"train.py": "import net, unchanged", "net.py": PRINTS, "unchanged.py": ""})
    assert made.run("train.py").out == "net /cpu:0\n"
    assert sorted(made.files()) == ["net.py", "train.py", "unchanged.py"]
    plain = ["-c", "import net"]
    assert made.python(*plain, PYTHONDONTWRITEBYTECODE="").out == "net /gpu:0\n"
    before = made.files()
    assert len(before) == 4
    assert made.run("train.py").out == "net /cpu:0\n"
    assert made.files() == before
    assert made.python(*plain).out == "net /gpu:0\n"


PROCESSES = """
import multiprocessing, sys
import net
{prints}

def work(number):
    with tf.device('/gpu:0') as name:
        return number, name, net.name()


if __name__ == '__main__':
    for method in ('fork', 'spawn', 'forkserver'):
        context = multiprocessing.get_context(method)
        with context.Pool(1) as pool:
            print(method, pool.map(work, [1, 2]))
"""


@pytest.mark.parametrize("arguments", [["train.py"], ["-m", "train"]], ids=["script", "module"])
def test_child_processes_convert_too(arguments: Any, project: Make) -> None:
    made = project(
        {
            "train.py": PROCESSES.format(prints="import tensorflow as tf"),
            "net.py": ('import tensorflow as tf\ndef name():\n    with tf.device("/gpu:0") as found: return found\n'),
        }
    )
    done = made.run(*arguments)
    assert done.code == 0, done.err
    assert done.out == "".join(
        f"{method} [(1, '/cpu:0', '/cpu:0'), (2, '/cpu:0', '/cpu:0')]\n" for method in ("fork", "spawn", "forkserver")
    )
    assert len(done.said) == 1
    assert sorted(made.files()) == ["net.py", "train.py"]


NESTED = """
import multiprocessing
import tensorflow as tf

def work(depth):
    if depth:
        child = multiprocessing.get_context('spawn').Process(target=work, args=(depth - 1,))
        child.start()
        child.join()
    else:
        with tf.device('/gpu:0') as name:
            print(name)


if __name__ == '__main__':
    work(2)
"""


@pytest.mark.once
def test_processes_of_child_processes_convert_too(project: Make) -> None:
    assert project({"train.py": NESTED}).run("train.py").out == "/cpu:0\n"


@pytest.mark.once
@pytest.mark.parametrize(
    "arguments, text",
    [
        ([], "missing script: give a script, or -m and a module"),
        (["no.py"], "file not found: no.py. Give a Python script"),
        (["empty"], "file not found: empty/__main__.py."),
        (["train.zip"], "train.zip is not source text, so it cannot be migrated"),
        (["train.pyc"], "train.pyc is not source text"),
        (["--select", "NPU9", "train.py"], "there is no rule NPU9"),
        (["--verbos", "train.py"], "unknown option '--verbos'. Did you mean --verbose?"),
    ],
)
def test_wrong_usage_is_an_error_with_exit_code_2(arguments: Any, text: str, project: Make) -> None:
    made = project({"train.py": PRINTS, "empty/x.txt": "", "train.pyc": "x"})
    with zipfile.ZipFile(str(made.root / "train.zip"), "w") as archive:
        archive.writestr("__main__.py", PRINTS)
    done = made.run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert text in done.err + "\n".join(done.said)


@pytest.mark.once
def test_a_wrong_configuration_is_an_error(project: Make) -> None:
    done = project({"train.py": PRINTS, "pyproject.toml": "[tool.convert_tf2npu]\nselct = []\n"}).run("train.py")
    assert (done.code, done.out) == (2, "")
    assert "unknown key. Did you mean select?" in done.said[0]


@pytest.mark.once
def test_without_the_tool_the_error_names_the_searched_folders(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    shutil.copytree(str(repo_root / "npu_shim"), str(tmp_path / "alone" / "npu_shim"))
    (tmp_path / "train.py").write_text('print("ran")')
    done = subprocess.run(
        [
            sys.executable,
            "-E",
            "-c",
            'import sys; sys.path.insert(0, "alone"); '
            'from npu_shim.cli import main; sys.exit(main(["run", "train.py"]))',
        ],
        cwd=str(tmp_path),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "the migration tool, package convert_tf2npu, is missing" in done.stderr
    assert str(tmp_path / "alone" / "tools" / "convert_tf2npu") in done.stderr


@pytest.mark.once
def test_the_tool_is_found_where_it_is_installed(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    site = tmp_path / "site-packages"
    shutil.copytree(str(repo_root / "npu_shim"), str(site / "npu_shim"))
    shutil.copytree(str(repo_root / "tools" / "convert_tf2npu"), str(site / "convert_tf2npu"))
    (tmp_path / "train.py").write_text('import sys; print("convert_tf2npu" in sys.modules)')
    done = subprocess.run(
        [sys.executable, "-m", "npu_shim", "run", "train.py"],
        cwd=str(tmp_path),
        env={"PYTHONPATH": str(site)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "True\n")
