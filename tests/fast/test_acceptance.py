"""The scripts of docs/ that run public code: pages have the kept results, and their parts select, edit and render."""

from __future__ import annotations

import gzip
import importlib.util
import os
import pathlib
import struct
import subprocess
import sys
import zlib
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.once


def load(repo_root: pathlib.Path, name: str) -> Any:
    """Return a module of docs/."""
    path = str(repo_root / "docs")
    spec = importlib.util.spec_from_file_location(name, str(repo_root / "docs" / f"{name}.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, path)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path = [each for each in sys.path if each != path]
    return module


@pytest.fixture
def acceptance(repo_root: pathlib.Path) -> Any:
    """The script."""
    return load(repo_root, "make_acceptance")


def entry(acceptance: Any, **changes: Any) -> Any:
    """An entry with a planted defect."""
    made = acceptance.Script("owner/name", "abc1234", "session", "1.15", "examples", "train.py")
    verified = acceptance.verified
    defect = verified.Defect("rate 2 % higher", [verified.Edit("train.py", r"rate = 0\.1", "rate = 0.102")])
    return made._replace(**{"defect": defect, **changes})


def table_of(page: pathlib.Path, maker: Any) -> str:
    """The table in a page."""
    return page.read_text(encoding="utf-8").split(maker._BEGIN)[1].split(maker._END)[0]


def test_the_pages_have_the_tables_of_all_kept_results(repo_root: pathlib.Path, acceptance: Any) -> None:
    docs = repo_root / "docs"
    for name in ("verify.md", "zh/verify.md"):
        assert table_of(docs / name, acceptance) == acceptance.table(acceptance.LISTS, True)
    models = acceptance.acceptance_zoo
    assert table_of(docs / "public-models.md", acceptance) == acceptance.table([models], False)
    results = acceptance.kept(models).read()
    assert len(results) == len(models.SCRIPTS)
    for script in models.SCRIPTS:
        expected = "not reproducible" if script.script in models.CAUSES else "agree"
        assert results[script.name].verdict.split(":")[0] == expected, script.name
    later, exports = load(repo_root, "make_later_names"), load(repo_root, "make_exports")
    assert table_of(docs / "public-code.md", later) == later.table()
    assert table_of(docs / "public-models.md", exports) == exports.table()


def test_each_script_that_is_compared_across_versions_has_its_row(repo_root: pathlib.Path) -> None:
    versions = load(repo_root, "make_versions")
    rows = versions.known()
    assert list(rows) == list(versions.PAIRS) and all(rows.values())
    assert len({pair.script for pair in versions.PAIRS}) == 10
    for pair, row in rows.items():
        assert row.endswith(f" {pair.cause} |") if " differ " in row else " agree " in row, row
    assert table_of(repo_root / "docs" / "verify.md", versions) == versions.table(rows)


def test_each_difference_to_a_later_version_has_its_cause(repo_root: pathlib.Path) -> None:
    later = load(repo_root, "make_later_names")
    made = later.kept().read()
    assert all(
        made[script.name].verdict == "agree" or later.CAUSES[script.script]
        for script in later.SCRIPTS
        if script.name in made
    )


def test_names_are_unique_and_each_result_belongs_to_an_entry(acceptance: Any) -> None:
    lists = (*acceptance.LISTS, acceptance.acceptance_zoo)
    names = [script.name for module in lists for script in module.SCRIPTS]
    assert len(set(names)) == len(names)
    for module in lists:
        for script in module.SCRIPTS:
            result = acceptance.kept(module).read().get(script.name)
            assert result is None or bool(result.found) == bool(script.defect), script.name


def test_entries_are_chosen_by_version_name_and_missing_result(
    acceptance: Any, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    module = acceptance.LISTS[0]
    scripts = (entry(acceptance), entry(acceptance, script="other.py"), entry(acceptance, tensorflow="2.15"))
    monkeypatch.setattr(acceptance.verified, "HERE", str(tmp_path))
    monkeypatch.setattr(acceptance, "LISTS", (module,))
    monkeypatch.setattr(module, "SCRIPTS", scripts)
    acceptance.kept(module).add(acceptance.Result(scripts[0].name, 20, 31, "agree", 9, ""))
    monkeypatch.setattr(acceptance.acceptance_zoo, "SCRIPTS", ())
    assert acceptance.chosen("1.15.5", "", False) == [(module, scripts[0]), (module, scripts[1])]
    assert acceptance.chosen("1.15.5", "train", False) == [(module, scripts[0])]
    assert acceptance.chosen("1.15.5", "", True) == [(module, scripts[1])]


def test_a_kept_result_leaves_the_others_and_makes_a_row(
    acceptance: Any, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    module = acceptance.LISTS[0]
    first, second = entry(acceptance), entry(acceptance, script="other.py", defect=None)
    monkeypatch.setattr(acceptance.verified, "HERE", str(tmp_path))
    monkeypatch.setattr(module, "SCRIPTS", (first, second))
    acceptance.kept(module).add(acceptance.Result(second.name, 20, 31, "differ at step 2: loss", 9, ""))
    acceptance.kept(module).add(acceptance.Result(first.name, 20, 30, "agree", 8, "differ at step 1: rate"))
    count, _, _, _, *rows = acceptance.table([module], True).splitlines()
    assert count == "2 scripts: 1 agree, 1 differ. 1 planted defects: 1 found."
    assert [row.split(" | ")[1:] for row in rows] == [
        ["session", "1.15", "20", "30", "agree", "8", "rate 2 % higher", "differ at step 1: rate |"],
        ["session", "1.15", "20", "31", "differ at step 2: loss", "9", "", " |"],
    ]


def test_a_row_of_the_models_says_what_is_compared(acceptance: Any, tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    module = acceptance.acceptance_zoo
    edits = [acceptance.verified.Edit("*.py", "npu_bridge", "tensorflow")]
    scripts = entry(acceptance, defect=None), entry(acceptance, script="port.py", defect=None, plain=edits)
    monkeypatch.setattr(acceptance.verified, "HERE", str(tmp_path))
    monkeypatch.setattr(module, "SCRIPTS", scripts)
    for script in scripts:
        acceptance.kept(module).add(acceptance.Result(script.name, 3, 31, "agree", 9, ""))
    rows = acceptance.table([module], False).splitlines()[4:]
    assert [row.split(" | ")[-2:] for row in rows] == [
        ["9", "script and conversion |"],
        ["9", "plain form and port |"],
    ]


def test_a_port_is_compared_with_its_form_without_npu_code(
    acceptance: Any, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    def project(script: Any, sources: str, target: str) -> None:
        os.makedirs(os.path.join(target, "models"))
        for name in ("train.py", "models/net.py"):
            with open(os.path.join(target, name), "w", encoding="utf-8") as stream:
                stream.write("from npu_bridge.npu_init import *\n")

    seen = []

    def verify(name: str, arguments: list[str], folder: str, report: str) -> Any:
        where = arguments.index("train.py")
        assert arguments[where + 2 :] == ["--", "--epochs=1"]
        for root in (folder, os.path.dirname(arguments[where + 1])):
            texts = [open(os.path.join(root, each), encoding="utf-8").read() for each in ("train.py", "models/net.py")]
            seen.append("".join(texts))
        return {"verdict": "agree", "original": {"steps": 3}, "streams": []}

    monkeypatch.setattr(acceptance.verified, "project", project)
    monkeypatch.setattr(acceptance.verified, "verify", verify)
    plain = [acceptance.verified.Edit("**/*.py", r"from npu_bridge.*", "import tensorflow as tf")]
    port = entry(acceptance, defect=None, plain=plain, arguments="--epochs=1")
    assert acceptance.measure(port, "", str(tmp_path)).verdict == "agree"
    assert seen == ["import tensorflow as tf\n" * 2, "from npu_bridge.npu_init import *\n" * 2]


def test_a_verdict_has_the_first_value_that_departs(repo_root: pathlib.Path) -> None:
    verdict = load(repo_root, "verified").verdict
    problems = ["The first difference is at step 1: loss 'loss', 1 and 2.", "Before it, values differ."]
    assert verdict({"verdict": "differ", "problems": problems}) == "differ at step 1: loss 'loss', 1 and 2."
    itself = {"verdict": "not reproducible", "problems": ["The original departs from itself at step 1: loss."]}
    assert verdict(itself) == "not reproducible: The original departs from itself at step 1: loss."
    assert verdict({"verdict": "not run", "problems": ["a.py ended with exit code 1."]}) == "not run"


def test_a_project_has_the_files_of_its_commit(acceptance: Any, tmp_path: pathlib.Path) -> None:
    clone = tmp_path / "owner" / "name"
    clone.mkdir(parents=True)
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    (clone / "examples").mkdir()
    (clone / "examples" / "train.py").write_text("rate = 0.1\n", encoding="utf-8")
    for arguments in (["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *arguments], check=True)
    commit = subprocess.check_output([*git, "rev-parse", "HEAD"]).decode().strip()
    (clone / "examples" / "train.py").write_text("later", encoding="utf-8")
    script = entry(acceptance, commit=commit)
    sources = tmp_path / "sources" / "owner"
    sources.mkdir(parents=True)
    (sources / "name").symlink_to(clone / ".git")
    acceptance.verified.project(script, str(tmp_path / "sources"), str(tmp_path / "made"))
    acceptance.verified.edit(str(tmp_path / "made"), script.defect.edits)
    assert (tmp_path / "made" / "train.py").read_text(encoding="utf-8") == "rate = 0.102\n"
    with pytest.raises(ValueError, match=r"train\.py: the edit 'batch' changes nothing"):
        acceptance.verified.edit(str(tmp_path / "made"), [acceptance.verified.Edit("train.py", "batch", "")])


def test_the_digits_have_the_format_of_mnist(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    data = load(repo_root, "public_data")
    data.main(["digits", str(tmp_path / "a" / "b"), "20", "10", "gz"])
    with gzip.open(str(tmp_path / "a" / "b" / "t10k-images-idx3-ubyte.gz")) as stream:
        images = stream.read()
    with gzip.open(str(tmp_path / "a" / "b" / "train-labels-idx1-ubyte.gz")) as stream:
        labels = stream.read()
    assert struct.unpack(">IIII", images[:16]) == (2051, 10, 28, 28) and len(images) == 16 + 10 * 28 * 28
    assert struct.unpack(">II", labels[:8]) == (2049, 20) and set(labels[8:]) <= set(range(10))


def test_pictures_are_png_of_one_and_three_channels(repo_root: pathlib.Path) -> None:
    data = load(repo_root, "public_data")
    for channels, colours in ((1, 0), (3, 2)):
        pixels = np.arange(4 * 5 * channels).reshape(4, 5, channels)
        made = data._png(pixels)
        assert struct.unpack(">IIBB", made[16:26]) == (5, 4, 8, colours)
        length = struct.unpack(">I", made[33:37])[0]
        lines = np.frombuffer(zlib.decompress(made[41 : 41 + length]), np.uint8).reshape(4, -1)
        assert not lines[:, 0].any() and (lines[:, 1:] == pixels.reshape(4, -1)).all()


def test_arrays_have_their_shapes_and_classes(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    load(repo_root, "public_data").main(["arrays", str(tmp_path), "a/x:8,3", "y:8,2:classes"])
    assert np.load(str(tmp_path / "a" / "x.npy")).shape == (8, 3)
    labels = np.load(str(tmp_path / "y.npy"))
    assert labels.shape == (8, 2) and (labels.sum(1) == 1).all()


def test_lines_of_atc_agree_in_any_order_of_inputs(repo_root: pathlib.Path) -> None:
    maker = load(repo_root, "make_exports")
    page = '```\natc --model=a.pb --framework=3 \\\n  --input_shape="b:1,2; a:3" --out_nodes="prob:0"\n```\n'
    theirs = maker.arguments(page)
    assert theirs["input_shape"] == "b:1,2; a:3"
    ours = maker.arguments("atc --model=m.pb '--input_shape=a:3;b:1,2' --out_nodes=prob:0")
    assert maker.agreement(theirs, ours) == "same inputs and shapes; same outputs"
    assert maker.agreement(theirs, {**ours, "out_nodes": "c:0"}) == (
        "same inputs and shapes; outputs differ: `prob:0`, here `c:0`"
    )
    assert maker.agreement({"model": "a.pb"}, ours) == ""
