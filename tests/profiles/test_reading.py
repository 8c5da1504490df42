"""Broken files are named and the rest is read; lines, comparisons, significance and reports."""

from __future__ import annotations

import importlib
import json
import pathlib
import random
import re
import shutil
import sys

import numpy as np
import pytest

from npu_shim.cli import main
from npu_shim.options.page import documented_options
from npu_shim.profiles import op_kinds, profile_reader, steps, table_forms, tables
from npu_shim.profiles.devices import Profile
from npu_shim.profiles.findings import reason_for_kind
from npu_shim.profiles.op_kinds import KINDS, Signature
from npu_shim.profiles.profile_summary import probability_by_chance, to_page
from npu_shim.profiles.table_forms import ProfileFile
from npu_shim.rehearsal.assess.products import Product
from tests.profiles import card
from tests.profiles.planted import PLANTED

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return a folder with the same training as tables, data base and timeline."""
    root = tmp_path_factory.mktemp("exports")
    rank = card.run(PLANTED["Where"].make, steps=4)
    card.write(root / "tables", rank)
    card.write_database(root / "base" / "msprof_20240101000000.db", rank, [(0, 1, 1e6, 50.0)])
    card.write_timeline(root / "timeline" / "msprof_20240101000000.json", rank)
    return root


def test_a_broken_row_is_named_and_the_rest_is_read(exports: pathlib.Path, tmp_path: pathlib.Path) -> None:
    whole = to_page(profile_reader.read_profile(str(exports / "tables")), "whole").to_json()
    shutil.copytree(str(exports / "tables"), str(tmp_path / "copy"))
    (table,) = (tmp_path / "copy").rglob("op_summary*.csv")
    lines = table.read_text(encoding="utf-8").splitlines()
    table.write_text("\n".join([*lines[:5], lines[5][:40], *lines[6:], "0,1,2"]), encoding="utf-8")
    found = to_page(profile_reader.read_profile(str(tmp_path / "copy")), "copy").to_json()
    (problem,) = found["problems"]
    assert problem["problem"].startswith("2 rows are broken and skipped, the last at line")
    assert found["devices"][0]["runs"] == whole["devices"][0]["runs"] - 1
    assert [each["id"] for each in found["findings"]] == ["ai-cpu"]


@pytest.mark.parametrize("seed", range(12))
def test_damaged_files_never_crash(seed: int, exports: pathlib.Path, tmp_path: pathlib.Path) -> None:
    chance = random.Random(seed)
    for source in exports.rglob("*.*"):
        data = bytearray(source.read_bytes())
        for _ in range(chance.choice([1, 5, 50])):
            place = chance.randrange(len(data))
            damage = chance.choice(["flip", "cut", "double", "number"])
            if damage == "flip":
                data[place] = chance.randrange(256)
            elif damage == "cut":
                del data[place : place + chance.randrange(1, 4000)]
            elif damage == "double":
                data[place:place] = data[place : place + chance.randrange(1, 200)]
            else:
                data[place : place + 8] = chance.choice(
                    [b"1e400", b"-1", b"nan", b"99999999999999999999", b"\0", b'"', b"\n"]
                )
            if not data:
                break
        target = tmp_path / source.relative_to(exports)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(bytes(data))
    for folder in (tmp_path, tmp_path / "tables", tmp_path / "base", tmp_path / "timeline"):
        assert main(["profile", str(folder), "--html", str(tmp_path / "page.html")]) in (0, 2)


def test_lines_of_the_script_stand_beside_ops_and_fused_ops(exports: pathlib.Path, tmp_path: pathlib.Path) -> None:
    shutil.copytree(str(exports / "tables"), str(tmp_path / "copy"))
    (tmp_path / "copy" / "lines.csv").write_text(
        "op name,op type,line\nboxes/Where,Where,train.py:12 (loss)\nx,X,train.py:3 (net)\n"
    )
    fused = "Fusion Op,Original Ops\nforward/layer_0/MatMul,x\n"
    (tmp_path / "copy" / "fusion_op_20240101000000.csv").write_text(fused)
    (tmp_path / "copy" / "ge_proto_00001_graph_1_Build.txt").write_text(
        'op {\n name: "forward/layer_1/MatMul"\n type: "MatMulV2"\n attr {\n  key: "_datadump_original_op_names"\n'
        '  value {\n list {\n s: "y"\n s: "x"\n }\n }\n }\n}\n'
    )
    found = to_page(profile_reader.read_profile(str(tmp_path / "copy")), "copy").to_json()
    assert found["findings"][0]["evidence"][0]["line"] == "train.py:12 (loss)"
    assert {row["line"] for row in found["ops"] if row["name"] == "forward/layer_1/MatMul"} == {"train.py:3 (net)"}
    assert {row["line"] for row in found["ops"] if row["name"] == "forward/layer_0/MatMul"} == {"train.py:3 (net)"}


def test_a_profile_of_the_cpu_and_an_assessment_know_lines_too(exports: pathlib.Path, tmp_path: pathlib.Path) -> None:
    row = {"op": "Where", "lines": ["train.py:12 (loss)", "train.py:20 (main)"]}
    assessed = {
        "tool": "npu-shim assess",
        "schema_version": 1,
        "graphs": [{"operators": [row, {"op": "Relu", "lines": []}]}],
    }
    (tmp_path / "assess.json").write_text(json.dumps(assessed), encoding="utf-8")
    (tmp_path / "other.json").write_text("[1]", encoding="utf-8")
    (tmp_path / "lines_20240101000000.csv").write_text("op name,line\nforward/layer_0/MatMul,train.py:3 (net)\n")
    found = to_page(profile_reader.read_profile(str(exports / "tables"), [str(tmp_path)]), "").to_json()
    assert found["findings"][0]["evidence"][0]["line"] == "train.py:12 (loss)"
    assert {row["line"] for row in found["ops"] if row["name"] == "forward/layer_0/MatMul"} == {"train.py:3 (net)"}
    assert found["problems"] == []


@pytest.mark.parametrize(
    ("head", "cell", "digits"),
    [("Task Start Time", "1043640017380.831", 3), ("Task Start Time", "17000", 0), ("FP Start(ns)", "1.5", 0)],
)
def test_a_time_without_a_unit_is_in_microseconds_if_it_has_a_point(head: str, cell: str, digits: int) -> None:
    assert table_forms.nanosecond_digits(head, cell) == digits


def test_a_pyarrow_that_cannot_be_imported_is_reported(
    exports: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyarrow.py").write_text("raise ImportError('pyarrow requires NumPy 2.0 or newer')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "pyarrow", raising=False)
    found = to_page(profile_reader.read_profile(str(exports / "tables")), "").to_json()
    why = "cannot be imported: pyarrow requires NumPy 2.0 or newer"
    problem = f"{why}. Python's csv reads tables, about 4 times slower"
    assert found["problems"] == [{"file": "pyarrow", "problem": problem}] and found["step"]["number"] == 3


@pytest.mark.parametrize(("name", "ending"), [("tables", "000102.csv"), ("base", "000000.db")])
def test_of_two_exports_the_last_is_read(name: str, ending: str, exports: pathlib.Path, tmp_path: pathlib.Path) -> None:
    shutil.copytree(str(exports / name), str(tmp_path / "copy"))
    for export in list((tmp_path / "copy").rglob(f"*_20240101{ending}")):
        shutil.copy(str(export), str(export.with_name(export.name.replace("_20240101", "_20231231"))))
    assert (
        to_page(profile_reader.read_profile(str(tmp_path / "copy")), "").to_json()
        == to_page(profile_reader.read_profile(str(exports / name)), "").to_json()
    )


def test_the_messages_of_a_step_trace_are_read_where_the_exporter_subtracts_them_the_wrong_way(
    tmp_path: pathlib.Path,
) -> None:
    took, start = 250_000, 1_700_000_000_050_000_000  # nanoseconds
    wrapped = (1 << 64) - took
    cells = [1, *map(card._us, (start, start, start + 10**6)), 1000, card._us(start)]
    heads = "Model ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),Reduce Start(us),Reduce Duration(us)"
    path = tmp_path / "step_trace_20240101000000.csv"
    path.write_text(f"{heads}\n{','.join(map(str, cells))},{wrapped // 1000}.{wrapped % 1000:03d}\n")
    made = Profile([])
    tables.read_rows(ProfileFile(str(path), "step_trace", "", ""), made)
    assert steps.steps_and_messages_of_trace(made.rows["step_trace"])[1] == [(start, took)] and not made.problems


def test_the_step_is_named_as_slower_only_if_it_is(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    card.write(tmp_path / "old", card.run(lambda number: card.balanced()))
    card.write(tmp_path / "new", card.run(PLANTED["casts"].make))
    assert main(["profile", str(tmp_path / "old"), str(tmp_path / "new")]) == 1
    text = capsys.readouterr().out
    assert re.search(r"^  Cast +0.030 +1.030 .* slower$", text, re.M) and ": slower (11 and 11 steps)" in text
    assert main(["profile", str(tmp_path / "new"), str(tmp_path / "old")]) == 0
    assert main(["profile", str(tmp_path / "old"), str(tmp_path / "old")]) == 0
    assert ": no significant difference" in capsys.readouterr().out


def test_significance_is_that_of_the_rank_sum_test() -> None:
    chance = np.random.RandomState(0)
    found = []
    for _ in range(400):
        first, second = chance.normal(size=(2, 15))
        probability = probability_by_chance(first, second)
        assert probability is not None
        found.append(probability)
    assert 0.02 < np.mean(np.array(found) < 0.05) < 0.09  # of equal distributions
    assert (probability_by_chance(np.arange(10.0), np.arange(10.0) + 100) or 1) < 1e-3
    assert (
        probability_by_chance(np.ones(6), np.ones(6)) == 1.0 and probability_by_chance(np.ones(3), np.ones(9)) is None
    )


def test_ranked_by_gain_a_fix_leaves_the_time_that_its_product_needs(tmp_path: pathlib.Path) -> None:
    made = PLANTED["float64"].make
    large = card.Op(
        "pad/Where",
        "Where",
        1100,
        "AI_CPU",
        shapes="8192,16384",
        types="FLOAT",
        out_shapes="8192,16384",
        out_types="FLOAT",
    )

    def both(number: int) -> card.Step:
        step = made(number)
        step.training = [card.replace(op, us=1000) if op.name == "norm" else op for op in [large, *step.training]]
        return step

    card.write(tmp_path, card.run(both))
    out = tmp_path / "page.json"
    order = []
    for more in ([], ["--rank-by-gain", "--product", "ascend910"]):
        assert main(["profile", str(tmp_path), "--json", str(out), *more]) == 0
        order.append([each["id"] for each in json.loads(out.read_text(encoding="utf-8"))["findings"]])
    assert order == [["ai-cpu", "float64"], ["float64", "ai-cpu"]]


def test_of_two_runs_in_one_folder_the_last_is_read(tmp_path: pathlib.Path) -> None:
    for number, (name, begin) in enumerate({"Where": card.BEGIN, "casts": card.BEGIN + 10**12}.items()):
        card.write(tmp_path / f"run_{number}", card.run(PLANTED[name].make, begin=begin))
    found = to_page(profile_reader.read_profile(str(tmp_path)), "").to_json()
    assert [each["id"] for each in found["findings"]] == ["casts"] and found["device"] == "0"
    (problem,) = found["problems"]
    assert problem["file"].startswith("run_0") and "earlier run and was left out" in problem["problem"]
    for rank in range(2):
        (tmp_path / f"run_{rank}").rename(tmp_path / f"rank_{rank}")
    found = to_page(profile_reader.read_profile(str(tmp_path)), "").to_json()
    assert [each["device"] for each in found["devices"]] == ["0", "1"] and found["problems"] == []


@pytest.mark.parametrize(
    ("cells", "flops", "moved"),
    [
        (
            ("MatMulV2", "4096,1024;1024,512", "FLOAT16;DT_BF16", "ND;ND", "4096,512", "FLOAT", "ND"),
            2 * 4096 * 1024 * 512,
            2 * (4096 * 1024 + 1024 * 512) + 4 * 4096 * 512,
        ),
        (  # the shape in memory: 20 rows of 40 are 32 rows of 48
            ("MatMul", "3,2,16,16;5,3,16,16", "FLOAT16;FLOAT16", "FRACTAL_NZ;FRACTAL_NZ", "5,2,16,16", "FLOAT16", "FRACTAL_NZ"),
            2 * 32 * 48 * 80,
            2 * (32 * 48 + 48 * 80 + 32 * 80),
        ),
        (
            ("Conv2D", "8,4,28,28,16;36,8,16,16;128", "FLOAT16;FLOAT16;FLOAT", "NC1HWC0;FRACTAL_Z;ND", "8,8,28,28,16", "FLOAT16", "NC1HWC0"),
            2 * 8 * 28 * 28 * 9 * 64 * 128,
            2 * (8 * 64 * 28 * 28 + 9 * 64 * 128 + 8 * 128 * 28 * 28) + 4 * 128,
        ),
        (("Conv2D", "N/A", "N/A", "N/A", "N/A", "N/A", "NHWC"), 0, 0),
        (("GatherV2", "50000,64;32,20;", "FLOAT;INT32;INT32", "ND;ND;ND", "32,20,64", "FLOAT", "ND"), 0, 4 * 641 + 8 * 32 * 20 * 64),
        (("Mul", "8,8;", "FLOAT;FLOAT", "ND;ND", "8,8", "FLOAT", "ND"), 0, 4 * (64 + 1 + 64)),
    ],
)  # fmt: skip
def test_the_bound_of_an_op_is_that_of_its_operations_and_bytes(cells: tuple[str, ...], flops: int, moved: int) -> None:
    type, shapes, types, formats, out_shapes, *out = cells
    op = Signature("", "", "", type, "AI_CORE", f'"{shapes}"', types, formats, f'"{out_shapes}"', *out)
    assert op_kinds.least_nanoseconds(op, Product("", 1e12, 1e30, 0, "")) == pytest.approx(1e9 * flops / 1e12, 1e-12)
    assert op_kinds.least_nanoseconds(op, Product("", 1e30, 1.0, 0, "")) == pytest.approx(1e9 * moved)


def test_a_single_run_without_a_duration_is_a_profile(tmp_path: pathlib.Path) -> None:
    table = "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\na,Relu,AI_CORE,1.5,0\n"
    (tmp_path / "op_summary_20240101000000.csv").write_text(table)
    assert main(["profile", str(tmp_path)]) == 0


def test_fixes_name_what_exists(repo_root: pathlib.Path) -> None:
    for name, kind in KINDS.items():
        page, _, row = kind.see.partition("#")
        text = (repo_root / "docs" / page).read_text(encoding="utf-8")
        assert not row or f'<a id="{row}"></a>' in text, name
        for dotted in re.findall(r"npu_shim(?:\.\w+)+", " ".join([kind.fix, *(row["use"] for row in kind.instead)])):
            module, _, attribute = dotted.rpartition(".")
            assert attribute in importlib.import_module(module).__all__, (name, dotted)
    options = {
        "enable_data_pre_proc",
        "iterations_per_loop",
        "precision_mode",
        "modify_mixlist",
        "aoe_mode",
        "work_path",
        "fusion_switch_file",
    }
    assert options <= {row.name for row in documented_options()}
    used = {word for kind in KINDS.values() for word in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", kind.fix)}
    assert options <= used


@pytest.mark.parametrize(
    ("type", "types", "words"),
    [
        ("Where", "BOOL", "no kernel of the AI Core; use npu_shim.data.masked_where"),
        ("UniqueV2", "FLOAT", "no kernel of the AI Core; use npu_shim.data.unique_padded"),
        ("NonMaxSuppressionV3", "FLOAT", "no kernel of the AI Core; use tf.image.combined_non_max_suppression"),
        ("LookupTableFind", "RESOURCE", "no kernel of the AI Core; use the input pipeline"),
        ("Add", "INT64;INT64", "on the AI CPU for its type INT64; use int32"),
        ("Mul", "COMPLEX64", "on the AI CPU for its type COMPLEX64; use two real tensors"),
        ("Cholesky", "FLOAT", "no kernel of the AI Core"),
    ],
)
def test_an_op_on_the_ai_cpu_has_a_reason_and_what_to_use_instead(type: str, types: str, words: str) -> None:
    assert reason_for_kind(Signature(name="a", type=type, core="AI_CPU", types=types)) == words


def test_the_page_shows_a_timeline_without_the_network(exports: pathlib.Path, tmp_path: pathlib.Path) -> None:
    page = tmp_path / "page.html"
    assert main(["profile", str(exports / "tables"), "--html", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "boxes/Where: 2.0" in text and "<svg" in text and "://" not in text


def _slow_first(number: int) -> card.Step:
    step = card.balanced()
    step.training += [card.idle(90_000)] if number == 0 else [card.idle(40_000)] if number == 1 else []
    return step


@pytest.mark.parametrize("export", ["op_summary", "step_trace", "data base"])
def test_slow_first_steps_are_left_out(export: str, tmp_path: pathlib.Path) -> None:
    place, rank = tmp_path / "PROF_000001_1_A", card.run(_slow_first)
    if export == "data base":
        card.write_database(place / "msprof_20240101000000.db", rank)
    else:
        card.write(tmp_path, rank)
    if export == "op_summary":
        next(iter(tmp_path.rglob("step_trace*"))).unlink()
    found = to_page(profile_reader.read_profile(str(tmp_path)), "").to_json()
    first = 2 if export == "op_summary" else 1  # a step trace and marks do not count the first one at all
    assert (found["step"]["number"], found["step"]["left_out"], found["findings"]) == (10, first, [])
    assert found["step"]["longest_ms"] < 1.02 * found["step"]["shortest_ms"]


def test_the_steps_that_a_run_names_are_read(tmp_path: pathlib.Path) -> None:
    rank = card.run(lambda number: card.balanced())
    card.write(tmp_path / "rank_0", rank)
    spans = {"4 to 6": (rank.steps[3][-1], rank.steps[6][-1]), "none": (0, 10)}
    for name, (begin, end) in spans.items():
        (tmp_path / "rank_0" / "profiled_steps.csv").write_text(f"begin,end\n{begin - 1000},{end + 1000}\n")
        step = to_page(profile_reader.read_profile(str(tmp_path)), "").to_json()["step"]
        assert (step["number"], step["left_out"]) == ((3, 3) if name == "4 to 6" else (11, 0))
    card.write(tmp_path / "rank_10", rank)
    (tmp_path / "rank_0").rename(tmp_path / "rank_1")
    begin, end = spans["4 to 6"]
    for name, until in (("rank_1", rank.steps[4][-1]), ("rank_10", end)):
        (tmp_path / name / "profiled_steps.csv").write_text(f"begin,end\n{begin - 1000},{until + 1000}\n")
    assert [len(each.steps.edges) for each in profile_reader.read_profile(str(tmp_path)).devices] == [1, 3]
