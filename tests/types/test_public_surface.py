"""The public surface is as in the last release, or the changelog says what became of it."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import sys
from types import ModuleType

import pytest

OLD = [
    "name npu_shim.data.pad: (dataset, size=3, *, axis=0)",
    "name npu_shim.data.Bucket: class",
    "option npu-shim run --half: float16|bfloat16",
    "option npu-shim run --quiet",
    "exit-codes npu-shim run: 0, 1",
    "json verify steps: integer",
    "rule NPU101",
]


@pytest.fixture(scope="module")
def surface(repo_root: pathlib.Path) -> ModuleType:
    path = repo_root / "docs" / "public_surface.py"
    spec = importlib.util.spec_from_file_location("public_surface", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["public_surface"] = module
    spec.loader.exec_module(module)
    return module


def test_the_changelog_names_what_was_removed_or_changed(surface: ModuleType, repo_root: pathlib.Path) -> None:
    released = (repo_root / "docs" / "public_surface.txt").read_text(encoding="utf-8").splitlines()
    present = surface.lines()
    print("added:", *surface.additions(released, present), sep="\n")
    changelog = (repo_root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert surface.unexplained(surface.departures(released, present), changelog) == []


def test_the_surface_has_all_kinds(surface: ModuleType) -> None:
    kinds = {line.split()[0] for line in surface.lines()}
    assert kinds == set("name module command option exit-codes variable npu-option rule json format file".split())


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("rule NPU101", "", "was removed"),
        ("option npu-shim run --quiet", "", "was removed"),
        ("option npu-shim run --quiet", "option npu-shim run --quiet: VALUE", "was without a value, and is VALUE"),
        ("float16|bfloat16", "float16", "was float16|bfloat16, and is float16"),
        ("0, 1", "0, 2", "was 0, 1, and is 0, 2"),
        ("steps: integer", "steps: number", "was integer, and is number"),
        ("size=3, ", "", "has no argument size"),
        ("size=3", "size=4", "has another place or default of size"),
        ("size=3, *, axis=0", "axis=0, size=3", "has another place or default of size"),
        ("axis=0)", "axis=0, more)", "needs the new argument more"),
        ("Bucket: class", "Bucket: (size)", "was class, and is (size)"),
    ],
)
def test_a_departure_is_noticed(old: str, new: str, reason: str, surface: ModuleType) -> None:
    found = surface.departures(OLD, [line.replace(old, new) for line in OLD])
    assert reason in [departure.reason for departure in found]


@pytest.mark.parametrize(
    ("old", "new"), [("axis=0)", "axis=0, more=1, **rest)"), ("|bfloat16", "|bfloat16|fp8"), ("integer", "integer")]
)
def test_an_addition_is_allowed_and_listed(old: str, new: str, surface: ModuleType) -> None:
    present = [line.replace(old, new) for line in OLD] + ["rule NPU999"]
    assert surface.departures(OLD, present) == []
    assert surface.additions(OLD, present) == ["rule NPU999"]


@pytest.mark.parametrize(
    ("entry", "is_named"),
    [
        ("* Remove `npu-shim run --quiet`, deprecated since 1.0. Use `--progress`.", True),
        ("* Replace the option\n  `--quiet` by `--progress`.", True),
        ("* `--quiet` is quieter.", False),
        ("* Remove `--progress`.", False),
        ("* Add `--all`.\n\n## 1.0\n\n* Remove `--quiet`.", False),
    ],
)
def test_an_entry_of_the_first_section_names_it(entry: str, is_named: bool, surface: ModuleType) -> None:
    found = surface.departures(OLD, [line for line in OLD if "--quiet" not in line])
    assert (surface.unexplained(found, f"# Changelog\n\n## 1.1\n\n{entry}\n") == []) == is_named


@pytest.mark.parametrize("page", ["docs/compatibility.md", "docs/zh/compatibility.md"])
def test_the_versions_of_tensorflow_are_those_of_the_environments(page: str, repo_root: pathlib.Path) -> None:
    tested = set()
    for name in ("tf115", "tf26", "tf215", "tf221"):
        text = (repo_root / "tests" / "envs" / f"{name}.txt").read_text(encoding="utf-8")
        pinned = re.search(r"(?m)^tensorflow==([\d.]+?)(?:\.\*)?$", text)
        assert pinned is not None, text
        tested.add(pinned[1])
    rows = re.findall(r"(?m)^\| ([\d.]+) \| 3\.\d+ \|", (repo_root / page).read_text(encoding="utf-8"))
    assert set(rows) == tested
