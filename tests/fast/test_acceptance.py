"""docs/make_acceptance.py: the page has the kept results, which are those of the lists, and parts select and render."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Any

import pytest

from tests.fast.test_public_paths import load

pytestmark = pytest.mark.once


@pytest.fixture
def acceptance(repo_root: pathlib.Path) -> Any:
    """The script."""
    return load(repo_root, "make_acceptance")


def entry(acceptance: Any, **changes: Any) -> Any:
    """An entry with a planted defect."""
    made = acceptance.Script("owner/name", "abc1234", "session", "1.15", "examples", "train.py")
    tf1 = acceptance.LISTS[0]
    defect = tf1.Defect("rate 2 % higher", [tf1.Edit("train.py", r"rate = 0\.1", "rate = 0.102")])
    return made._replace(**{"defect": defect, **changes})


def test_the_page_has_the_table_of_all_kept_results(repo_root: pathlib.Path, acceptance: Any) -> None:
    for name in ("verify.md", "zh/verify.md"):
        page = (repo_root / "docs" / name).read_text(encoding="utf-8")
        assert page.split(acceptance._BEGIN)[1].split(acceptance._END)[0] == acceptance.table()


def test_each_script_that_is_compared_across_versions_has_its_row(repo_root: pathlib.Path) -> None:
    versions = load(repo_root, "make_versions")
    rows = versions.known()
    assert list(rows) == list(versions.PAIRS) and all(rows.values())
    assert len({pair.script for pair in versions.PAIRS}) == 10
    for pair, row in rows.items():
        assert row.endswith(f" {pair.cause} |") if " differ " in row else " agree " in row, row


def test_names_are_unique_and_each_result_belongs_to_an_entry(acceptance: Any) -> None:
    names = [script.name for module in acceptance.LISTS for script in module.SCRIPTS]
    assert len(set(names)) == len(names)
    for module in acceptance.LISTS:
        for script in module.SCRIPTS:
            result = acceptance.results(module).get(script.name)
            assert result is None or bool(result.found) == bool(script.defect), script.name


def test_entries_are_chosen_by_version_name_and_missing_result(acceptance: Any, monkeypatch: Any) -> None:
    module = acceptance.LISTS[0]
    scripts = (entry(acceptance), entry(acceptance, script="other.py"), entry(acceptance, tensorflow="2.15"))
    monkeypatch.setattr(acceptance, "LISTS", (module,))
    monkeypatch.setattr(module, "SCRIPTS", scripts)
    monkeypatch.setattr(acceptance, "results", lambda _: {scripts[0].name: None})
    assert acceptance.chosen("1.15.5", [], False) == [(module, scripts[0]), (module, scripts[1])]
    assert acceptance.chosen("1.15.5", ["train"], False) == [(module, scripts[0])]
    assert acceptance.chosen("1.15.5", [], True) == [(module, scripts[1])]


def test_a_kept_result_leaves_the_others_and_makes_a_row(
    acceptance: Any, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    module = acceptance.LISTS[0]
    first, second = entry(acceptance), entry(acceptance, script="other.py", defect=None)
    monkeypatch.setattr(acceptance, "HERE", str(tmp_path))
    monkeypatch.setattr(acceptance, "LISTS", (module,))
    monkeypatch.setattr(module, "SCRIPTS", (first, second))
    acceptance.keep(module, acceptance.Result(second.name, 20, 31, "differ at step 2: loss", 9, ""))
    acceptance.keep(module, acceptance.Result(first.name, 20, 30, "agree", 8, "differ at step 1: rate"))
    count, _, _, _, *rows = acceptance.table().splitlines()
    assert count == "2 scripts: 1 agree, 1 differ. 1 planted defects: 1 found."
    assert [row.split(" | ")[1:] for row in rows] == [
        ["session", "1.15", "20", "30", "agree", "8", "rate 2 % higher", "differ at step 1: rate |"],
        ["session", "1.15", "20", "31", "differ at step 2: loss", "9", "", " |"],
    ]


def test_a_verdict_has_the_first_value_that_departs(acceptance: Any) -> None:
    problems = ["The first difference is at step 1: loss 'loss', 1 and 2.", "Before it, values differ."]
    assert acceptance.verdict({"verdict": "differ", "problems": problems}) == "differ at step 1: loss 'loss', 1 and 2."
    itself = {"verdict": "not reproducible", "problems": ["The original departs from itself at step 1: loss."]}
    assert acceptance.verdict(itself) == "not reproducible: The original departs from itself at step 1: loss."
    assert acceptance.verdict({"verdict": "not run", "problems": ["a.py ended with exit code 1."]}) == "not run"


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
    acceptance.project(script, str(tmp_path / "sources"), str(tmp_path / "made"))
    acceptance.edit(str(tmp_path / "made"), script.defect.edits)
    assert (tmp_path / "made" / "train.py").read_text(encoding="utf-8") == "rate = 0.102\n"
