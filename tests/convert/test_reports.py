"""The reports: each is whole, says everything, and can be read by what it is made for."""

from __future__ import annotations

import html.parser
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
from typing import Any

import convert_tf2npu
import pytest
from convert_tf2npu.main import main
from convert_tf2npu.report import explanation
from convert_tf2npu.report.file_text import FileText
from convert_tf2npu.report.html.frame import escape_html
from convert_tf2npu.report.html.parts import code_spans
from convert_tf2npu.report.side_by_side import _Lines, comparison_table
from convert_tf2npu.rules.registry import Registry

FILES = {
    "train.py": b'import tensorflow as tf\n\nname = "<b>&"\nwith tf.Session() as sess:\n    sess.run(name)\n',
    "a b/\xfcber#1.py": b'import tensorflow as tf\nx = "\xf0\x9f\x98\x80", tf.Session(**kw), tf.constant(1)\n',
    "old.py": b'import tensorflow as tf\nprint "</script><img src=x onerror=alert(1)>"\n',
    "nb.ipynb": json.dumps(
        {"cells": [{"cell_type": "code", "source": ["import tensorflow as tf\n", "tf.Session()"]}]}
    ).encode(),
    "plain.py": b"import os\n",
    "note<i>.py": b"import tensorflow as tf\n# </table>\ntf.Session()  # \x01 </script>\n",
}
TOOLS = str(pathlib.Path(convert_tf2npu.__file__).parent.parent)
VOID = {"meta", "input", "col", "br", "wbr"}


@pytest.fixture
def reports(tmp_path: pathlib.Path) -> pathlib.Path:
    source = tmp_path / "src"
    for name, raw in FILES.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(raw)
    assert main(["-i", str(source), "-o", str(tmp_path / "out"), "-r", str(tmp_path / "reports")]) == 2
    return tmp_path / "reports"


def test_all_four_are_written_and_nothing_else(reports: pathlib.Path) -> None:
    assert sorted(p.name for p in reports.iterdir()) == ["report.html", "report.json", "report.sarif", "report.txt"]
    assert sorted(p.name for p in reports.parent.iterdir()) == ["out", "reports", "src"]


def test_the_same_run_gives_the_same_reports(reports: pathlib.Path, tmp_path: pathlib.Path) -> None:
    first = {p.name: p.read_bytes() for p in reports.iterdir()}
    assert main(["-i", str(tmp_path / "src"), "--check", "-r", str(reports), "-j", "2"]) == 2
    assert {p.name: p.read_bytes() for p in reports.iterdir()} == first


def test_reports_show_what_in_place_replaced(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "a.py"
    script.write_bytes(FILES["train.py"])
    assert main(["-i", str(script), "--in-place", "--force", "-r", str(tmp_path / "r")]) == 0
    assert "<ins>" in (tmp_path / "r" / "report.html").read_text(encoding="utf-8")


def test_reports_may_lie_inside_the_output(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.py").write_bytes(FILES["train.py"])
    (tmp_path / "src").mkdir()
    (tmp_path / "a.py").rename(tmp_path / "src" / "a.py")
    out = tmp_path / "out"
    assert main(["-i", str(tmp_path / "src"), "-o", str(out), "-r", str(out / "reports")]) == 0
    assert (out / "reports" / "report.json").exists() and (out / "a.py").exists()


def test_a_migration_that_cannot_be_written_has_no_reports(tmp_path, capsys) -> None:
    (tmp_path / "a.py").write_bytes(FILES["train.py"])
    (tmp_path / "out").write_text("")
    assert main(["-i", str(tmp_path / "a.py"), "-o", str(tmp_path / "out"), "-r", str(tmp_path / "r")]) == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.py", "out"]
    assert main(["-i", str(tmp_path / "a.py"), "-r", str(tmp_path / "out")]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_the_text_says_everything_and_what_needs_the_user_first(reports: pathlib.Path) -> None:
    text = (reports / "report.txt").read_text(encoding="utf-8")
    assert "5 TensorFlow calls in 4 files: 1 fine, 3 rewritten, 1 needs a manual change." in text
    for words in (
        "train.py:4:6: NPU101",
        "nb.ipynb:cell 1:2:1: NPU101",
        "old.py:2:",
        "a b/\xfcber#1.py:2:10: NPU101 not converted",
    ):
        assert words in text
    heads = re.findall(r"^(.*)\n=+$", text, re.MULTILINE)
    assert heads == [
        "Manual changes: 1",
        "Unreadable: 1",
        "Rewritten: 3",
        "API support on TensorFlow 1.15, distinct APIs: 2",
    ]
    assert "after migration (1): " in text and "supported (1): " in text


def test_the_json_is_as_its_schema_page_says(reports: pathlib.Path, repo_root: pathlib.Path) -> None:
    report = json.loads((reports / "report.json").read_text(encoding="utf-8"))
    page = (repo_root / "docs" / "report-schema.md").read_text(encoding="utf-8")
    assert report["schema_version"] == 1
    rows = re.findall(r"^\| `([^`]+)` \|.*\|.*\|$", page, re.MULTILINE)
    with_facts = {"files[].diagnostics[].runs"}
    assert set(_keys(report)) == set(rows[: rows.index("left_out") + 1]) - with_facts
    assert report["summary"] == {
        "files_read": 6,
        "files_changed": 3,
        "files_unreadable": 1,
        "files_on_cpu": 0,
        "rewrites": 3,
        "findings": 1,
        "tensorflow_calls": {"total": 5, "fine": 1, "rewritten": 3, "left": 1},
    }
    files = {file["path"]: file for file in report["files"]}
    assert set(files) == set(FILES)
    assert files["nb.ipynb"]["diagnostics"][0]["cell"] == 1
    assert files["old.py"]["readable"] is False and files["plain.py"]["diagnostics"] == []


def _keys(value: Any, prefix: str = "") -> list[str]:
    if isinstance(value, dict):
        return [key for name, item in value.items() for key in [prefix + name] + _keys(item, prefix + name + ".")]
    if isinstance(value, list):
        return [key for item in value for key in _keys(item, prefix[:-1] + "[].")]
    return []


def test_the_sarif_names_every_place(reports: pathlib.Path) -> None:
    log = json.loads((reports / "report.sarif").read_text(encoding="utf-8"))
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert log["version"] == "2.1.0" and run["columnKind"] == "utf16CodeUnits"
    assert run["originalUriBaseIds"]["SRC"]["uri"].startswith("file:///")
    assert all(rule["help"]["text"] and rule["help"]["markdown"] for rule in rules)
    places: dict[str, Any] = {}
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        physical = result["locations"][0]["physicalLocation"]
        places[physical["artifactLocation"]["uri"]] = (result["level"], physical.get("region"))
    session = {"startColumn": 6, "endColumn": 16, "snippet": {"text": "tf.Session"}}
    assert places == {
        "train.py": ("note", dict(session, startLine=4)),
        # The emoji before it is one character and two units.
        "a%20b/%C3%BCber%231.py": ("warning", dict(session, startLine=2, startColumn=11, endColumn=21)),
        "old.py": ("error", places["old.py"][1]),
        "nb.ipynb": ("note", dict(session, startLine=1, startColumn=75, endColumn=85)),
        "note%3Ci%3E.py": ("note", dict(session, startLine=3, startColumn=1, endColumn=11)),
    }
    raw = FILES["nb.ipynb"].decode()
    assert raw[74:84] == "tf.Session"
    assert places["old.py"][1]["startLine"] == 2


def test_the_sarif_report_has_the_exit_code(reports: pathlib.Path) -> None:
    (run,) = json.loads((reports / "report.sarif").read_text(encoding="utf-8"))["runs"]
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 2)
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["associatedRule"]["id"] == "NPU000"
    assert notification["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "old.py"


def sarif_of(tmp_path: pathlib.Path, text: str) -> Any:
    (tmp_path / "src").mkdir(exist_ok=True)
    (tmp_path / "src" / "a.py").write_text(text)
    main(["-i", str(tmp_path / "src"), "--check", "-r", str(tmp_path / "r")])
    return json.loads((tmp_path / "r" / "report.sarif").read_text())["runs"][0]


def test_fingerprints_outlive_other_changes_and_differ(tmp_path: pathlib.Path) -> None:
    script = "import tensorflow as tf\ntf.Session()\nif x:\n    tf.Session()\nwith tf.Session(): pass\n"
    first, second = (
        [result["partialFingerprints"]["primaryLocationLineHash"] for result in sarif_of(tmp_path, text)["results"]]
        for text in (script, "# a comment\n\n" + script)
    )
    assert first == second and len(set(first)) == 3
    assert first[0].split(":")[0] == first[1].split(":")[0]


@pytest.mark.parametrize("text, code", [("x = 1\n", 0), ("import tensorflow as tf\ntf.Session()\n", 1), ("x = (\n", 2)])
def test_the_sarif_has_the_exit_code(text: str, code: int, tmp_path: pathlib.Path) -> None:
    (invocation,) = sarif_of(tmp_path, text)["invocations"]
    assert (invocation["exitCode"], invocation["executionSuccessful"]) == (code, code != 2)


def test_all_reports_name_the_files_that_stay_on_the_cpu(tmp_path: pathlib.Path) -> None:
    """No report is an all-clear where no script opens the NPU device."""
    run = sarif_of(tmp_path, "import tensorflow as tf\n@tf.function\ndef f(x):\n    return tf.abs(x)\nf(1)\n")
    line = "No script opens the NPU for a.py: TensorFlow 2 runs there on the CPU. "
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["level"] == "warning" and notification["message"]["text"].startswith(line)
    assert run["invocations"][0]["executionSuccessful"] and run["results"] == []
    report = json.loads((tmp_path / "r" / "report.json").read_text())
    assert report["summary"]["files_on_cpu"] == 1 and report["files"][0]["on_cpu"] is True
    assert all(line in (tmp_path / "r" / name).read_text() for name in ("report.txt", "report.html"))


def test_a_class_of_the_project_is_named_without_its_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "lars.py").write_text(
        "import tensorflow as tf\n\n\nclass Lars(tf.train.Optimizer):\n    def _apply_dense(self, g, v):\n        return v\n"
    )
    (tmp_path / "src" / "train.py").write_text(
        "import tensorflow as tf\nfrom lars import Lars\n\ntrain_op = Lars(False, 'lars').minimize(loss)\n"
    )
    assert main(["-i", str(tmp_path / "src"), "-d", "tf_strategy", "-r", str(tmp_path / "r")]) == 0
    names = [each["name"] for each in json.loads((tmp_path / "r" / "report.json").read_text())["apis"]]
    assert "Lars" in names and not any(str(tmp_path) in name for name in names)


@pytest.mark.parametrize("other, version", [("y = tf.abs(x)\n", "2.6"), ("x = tf.placeholder(tf.int32, [])\n", "1.15")])
def test_files_that_show_no_version_do_not_decide_which_support_list_holds(
    other: str, version: str, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text(
        "import tensorflow as tf\n@tf.function\ndef f(x):\n    return tf.abs(x)\n"
    )
    (tmp_path / "src" / "other.py").write_text("import tensorflow as tf\n" + other)
    assert main(["-i", str(tmp_path / "src"), "-r", str(tmp_path / "r")]) == 0
    assert f"API support on TensorFlow {version}," in (tmp_path / "r" / "report.txt").read_text()


class Page(html.parser.HTMLParser):
    """Checks that what is opened is closed, and collects what the page holds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_is_whole_needs_no_network_and_says_everything(reports: pathlib.Path) -> None:
    text = (reports / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    report = json.loads((reports / "report.json").read_text(encoding="utf-8"))
    scripts = [attrs.get("type") for tag, attrs in page.tags if tag == "script"]
    assert scripts == ["application/json", None]
    assert not {"img", "link", "iframe", "object", "i", "b "} & {tag for tag, _ in page.tags}
    assert not any(name.startswith("on") or name == "src" for _, attrs in page.tags for name in attrs)
    assert "http" not in re.sub(r"http-equiv", "", text) and "@import" not in text and "url(" not in text
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
    assert links and all(link[0] == "#" and link[1:] in ids for link in links)
    said = [
        (attrs["data-path"], attrs["data-rule"]) for tag, attrs in page.tags if tag == "li" and "data-path" in attrs
    ]
    expected = sorted((f["path"], d["code"]) for f in report["files"] for d in f["diagnostics"])
    assert sorted(said) == sorted(expected * 2)  # by rule and by file
    joined = "".join(page.texts)
    for file in report["files"]:
        for diagnostic in file["diagnostics"]:
            assert diagnostic["message"] in joined
    assert "\x01" not in text


def test_the_script_asks_for_elements_that_are_there(reports: pathlib.Path) -> None:
    text = (reports / "report.html").read_text(encoding="utf-8")
    ids = {attrs.get("id") for _, attrs in Page(text).tags}
    asked = set(re.findall(r"byId\('(\w+)'\)", text))
    assert asked and asked <= ids


def test_a_run_without_any_file_has_reports_too(tmp_path: pathlib.Path) -> None:
    (tmp_path / "src").mkdir()
    assert main(["-i", str(tmp_path / "src"), "--check", "-r", str(tmp_path / "r")]) == 0
    Page((tmp_path / "r" / "report.html").read_text(encoding="utf-8"))
    assert json.loads((tmp_path / "r" / "report.json").read_text())["files"] == []


@pytest.mark.nightly
def test_texts_are_not_kept_for_the_reports(tmp_path: pathlib.Path) -> None:
    """Sixty files of a megabyte: with all their bytes and lines in memory, it would be 250 MB more."""
    (tmp_path / "src").mkdir()
    for number in range(60):
        (tmp_path / "src" / (f"a{number}.py")).write_bytes(FILES["train.py"] + b"# nothing to be seen here\n" * 40_000)
    code = (
        "import sys\nfrom convert_tf2npu.main import main\ncode = main(sys.argv[1:])\n"
        # ru_maxrss counts the process that started this one, too
        "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "print(int(status['VmHWM'].split()[0]) // 1024, file=sys.stderr)\nsys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "-i", "src", "--check", "-r", "reports", "-j", "1"],
        cwd=str(tmp_path),
        capture_output=True,
        env=dict(os.environ, PYTHONPATH=TOOLS),
    )
    assert done.returncode == 1 and int(done.stderr) < 420, done.stderr
    page = (tmp_path / "reports" / "report.html").read_text(encoding="utf-8")
    assert page.count("<ins>") == 60 and page.count('<code class="line">') == 60
    shutil.rmtree(str(tmp_path))


def lines(raw: bytes) -> list[str]:
    return FileText("a.py", raw).lines


def test_the_sides_show_lines_with_their_numbers() -> None:
    page = Page(comparison_table(lines(b"a\nb\nc\n"), lines(b"a\nB <\nc\nd\n")))
    assert "".join(page.texts).split() == ["1a1a", "2b2B", "<", "3c3c", "4d", "45"]
    assert [attrs.get("class") for tag, attrs in page.tags if tag == "tr"] == [
        "equal",
        "replace",
        "equal",
        "insert",
        "equal",
    ]


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"# coding: nonsense\nx", b"x" * 5000, b"a\x00b\r\xe9"], ids=str)
def test_any_bytes_have_sides(raw: bytes) -> None:
    Page(comparison_table(lines(raw), lines(raw + b"\nmore")))


def test_characters_that_html_forbids_are_replaced() -> None:
    assert escape_html("a\x00\x1b\ud800<") == "a\ufffd\ufffd\ufffd&lt;"


@pytest.mark.parametrize(
    "text, code",
    [
        ("write tf.nn.top_k(x, k=3), which", ["tf.nn.top_k(x, k=3)"]),
        ("write kept, valid = tf.f(a, (b)) and mask", ["tf.f(a, (b))"]),
        ("for training write drop_remainder=True.", ["drop_remainder=True"]),
        ("write precision_mode='allow_mix' (with a_b)", ["precision_mode='allow_mix'", "a_b"]),
        ("the NPU's dropout isn't; '/cpu:0' is right", ["'/cpu:0'"]),
        ("write class Trainer(NPUEstimator) and give it an NPURunConfig", ["Trainer(NPUEstimator)", "NPURunConfig"]),
        ("write from tensorflow import keras", ["from tensorflow import keras"]),
        ("on the NPU (a session, e.g. this one)", []),
        ("open f( and tf.g([1", ["tf.g"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_code_in_messages_is_found(text: str, code: list[str]) -> None:
    assert [text[start:end] for start, end in code_spans(text)] == code


@pytest.mark.parametrize("rule", Registry().rules, ids=lambda rule: rule.code)
def test_each_rule_has_an_explanation(rule: Any) -> None:
    page = Page(explanation.doc_as_html(rule.doc))
    joined = " ".join(" ".join(page.texts).split())
    for block in explanation.doc_blocks(rule.doc):
        if block.kind == "code":
            assert " ".join(block.text.split()) in joined
    assert explanation.doc_body_as_markdown(rule.doc).count("```") % 2 == 0


def test_differences_by_lines_tell_how_one_text_becomes_the_other() -> None:
    for seed in range(300):
        draw = random.Random(seed)
        old = [str(draw.randrange(25)) for _ in range(draw.randrange(30))]
        new = [word for line in old for word in draw.choice([[line], [line], [line], [], [line + "x"], [line, "y"]])]
        opcodes = _Lines(old, new).get_opcodes()
        assert [line for _, _, _, first, last in opcodes for line in new[first:last]] == new
        assert [line for _, first, last, _, _ in opcodes for line in old[first:last]] == old
        assert all(old[a:b] == new[c:d] for kind, a, b, c, d in opcodes if kind == "equal")
    lines = [f"line {number}" for number in range(3000)]
    assert len(_Lines(lines, lines[:1500] + ["new"] + lines[1500:]).get_opcodes()) == 3


REPEATED = """import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(a, b, batch_size=32)%s
model.fit(c, d, batch_size=32)
model.fit(e, f, batch_size=32)
"""


@pytest.mark.parametrize("comment, line, others", [("", 5, 2), ("  # npu: ignore[NPU248]", 6, 1)])
def test_all_reports_have_one_finding_that_counts_the_others_of_a_file(
    comment: str, line: int, others: int, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "train.py"
    script.write_text(REPEATED % comment, encoding="utf-8")
    assert main(["-i", str(script), "--check", "-r", str(tmp_path / "r"), "--select", "NPU248"]) == 1
    words = f"such as x[:n] (and {others} more in this file)"
    assert capsys.readouterr().out.count(f"train.py:{line}:1: NPU248") == 1
    told = {
        kind: (tmp_path / "r" / f"report.{kind}").read_text(encoding="utf-8")
        for kind in ("json", "sarif", "html", "txt")
    }
    (found,) = json.loads(told["json"])["files"][0]["diagnostics"]
    assert (found["line"], found["message"].endswith(words)) == (line, True)
    (result,) = json.loads(told["sarif"])["runs"][0]["results"]
    assert (
        words in result["message"]["text"] and result["locations"][0]["physicalLocation"]["region"]["startLine"] == line
    )
    assert told["txt"].count(words) == 1 and words in told["html"]


def test_findings_with_a_fix_at_each_place_are_not_counted_as_one(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "a.py"
    script.write_text("import tensorflow as tf\n" + "y = tf.boolean_mask(x, m)\n" * 2, encoding="utf-8")
    main(["-i", str(script), "--check", "-r", str(tmp_path / "r"), "--select", "NPU231"])
    report = json.loads((tmp_path / "r" / "report.json").read_text(encoding="utf-8"))
    assert len(report["files"][0]["diagnostics"]) == 2
