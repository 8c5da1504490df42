"""Readers of files that come from elsewhere run no code of these files. SECURITY.md says so, and names the exceptions."""

from __future__ import annotations

import ast
import pathlib
import pickle
import subprocess
import sys
from typing import Callable, Iterator

import numpy as np
import pytest
from convert_tf2npu import api

from npu_shim.dumps import dump
from npu_shim.options import precision_files
from npu_shim.rehearsal import portable

pytestmark = pytest.mark.once

# Modules and functions that may run code of a file, or expand it without limit
UNSAFE = {"pickle", "marshal", "shelve", "dill", "joblib", "yaml", "tarfile", "xml"}
UNSAFE_CALLS = {"eval", "exec", "compile"}
ALLOWED = {
    "npu_shim/_host/process_settings.py pickle": "settings of a process that npu_shim starts, in its own command",
    "npu_shim/horovod/common/elastic.py pickle": "the state of the script that reads it; SECURITY.md names it",
    "npu_shim/horovod/tensorflow/functions.py pickle": "objects between the ranks of one job, as Horovod sends them",
    "npu_shim/import_hook/children.py pickle": "what a process gives to its child",
    "npu_shim/import_hook/hook.py compile": "the script of the user",
    "npu_shim/import_hook/migrated_code.py compile": "the script of the user",
    "npu_shim/import_hook/script.py compile": "the script of the user",
    "npu_shim/import_hook/script.py exec": "the script of the user",
    "npu_shim/ops/npu_only.py exec": "signatures in npu_shim/ops/operators.json",
    "npu_shim/rehearsal/observing/step_blocks.py compile": "a training step of the script of the user",
    "npu_shim/rehearsal/observing/step_blocks.py exec": "a training step of the script of the user",
    "npu_shim/rehearsal/reports/junit.py xml": "writes XML, and reads none",
}
DEEP = "[" * 200000


def unsafe(tree: ast.Module) -> Iterator[str]:
    """Yield the unsafe modules that a file imports, its unsafe calls, and arrays that may have pickled objects."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from (name.split(".")[0] for name in modules if name.split(".")[0] in UNSAFE)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in UNSAFE_CALLS:
            yield node.func.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load":
            keywords = {keyword.arg: ast.dump(keyword.value) for keyword in node.keywords}
            if getattr(node.func.value, "id", "") in ("np", "numpy") and "False" not in keywords.get(
                "allow_pickle", ""
            ):
                yield "load"


def test_readers_run_no_code_of_files(repo_root: pathlib.Path) -> None:
    found = set()
    for folder in ("npu_shim", "tools/convert_tf2npu"):
        for path in (repo_root / folder).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8-sig"))
            found |= {f"{path.relative_to(repo_root).as_posix()} {name}" for name in unsafe(tree)}
    assert found == set(ALLOWED)


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from xml.etree import ElementTree",
        "eval(text)",
        "np.load(path)",
        "np.load(p, allow_pickle=True)",
    ],
)
def test_the_law_sees(text: str) -> None:
    assert len(list(unsafe(ast.parse(text)))) == 1


class Exploding:
    """Its pickled form runs a command."""

    def __init__(self, trace: pathlib.Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return open, (str(self.trace), "w")


def test_a_dump_with_a_pickled_object_is_refused(tmp_path: pathlib.Path) -> None:
    trace, path = tmp_path / "trace", tmp_path / "MatMul.dense.1.2.1700000000000.output.0.npy"
    np.save(path, np.array([Exploding(trace)], object), allow_pickle=True)
    with pytest.raises(ValueError):
        dump.read_dump(str(path))
    assert not trace.exists()


def test_inputs_with_a_pickled_object_are_refused(tmp_path: pathlib.Path) -> None:
    from npu_shim.exporting import graph_defs, proof

    trace, path = tmp_path / "trace", tmp_path / "inputs.npz"
    np.savez(path, x=np.array([Exploding(trace)], object))
    with pytest.raises(graph_defs.ExportError, match="Give a file that numpy.savez wrote"):
        proof.load_input_values(str(path), [])
    assert not trace.exists()
    assert pickle.loads(pickle.dumps(Exploding(trace))) and trace.exists()  # the object itself does it


@pytest.mark.parametrize("text", [DEEP, DEEP + "]" * len(DEEP), '{"schema": ' + DEEP, "\0", "NaN", "[]", "{}"])
def test_hostile_json_is_one_clear_error(text: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / portable.MANIFEST
    path.write_text(text)
    with pytest.raises(api.UsageError, match="is no file of facts"):
        api.read_facts(str(path))
    with pytest.raises(portable.RecordingError, match="is no JSON|is not of a recording"):
        portable.load_recording(str(tmp_path))
    if text[:1] not in "[{" or text.startswith(("[[", '{"')):
        with pytest.raises(ValueError, match="modify_mixlist"):
            precision_files.check_mixlist(str(path))


def test_a_notebook_and_a_script_are_not_run(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    trace = tmp_path / "trace"
    (tmp_path / "train.py").write_text(f"open({str(trace)!r}, 'w')\nimport tensorflow as tf\ntf.Session()\n")
    (tmp_path / "deep.ipynb").write_text('{"cells": ' + DEEP)
    main = repo_root / "tools" / "convert_tf2npu" / "main.py"
    done = subprocess.run([sys.executable, str(main), str(tmp_path)], capture_output=True, text=True)
    assert (
        "NPU000" in done.stdout + done.stderr and "Traceback" not in done.stderr and "npu_config_proto" in done.stdout
    )
    assert not trace.exists()
