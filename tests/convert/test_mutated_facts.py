"""Files of facts that npu-shim observe did not write so: the tool refuses them in one line, or its findings stay."""

from __future__ import annotations

import copy
import json
import math
import os
import pathlib
from typing import Any, Callable, Dict

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.facts import checks, facts
from convert_tf2npu.facts.facts import Facts, ObservedRun, digest
from convert_tf2npu.facts.seen import MOST_DISTINCT, Block, FileFacts, Seen
from convert_tf2npu.files.errors import UsageError
from convert_tf2npu.main import main

Json = Dict[str, Any]
SCRIPT = """import tensorflow as tf

rows = tf.data.Dataset.from_generator(read, tf.int64).padded_batch(4, [None], drop_remainder=True)
x = tf.placeholder(tf.float32, [None, 4])  # tf.placeholder(tf.float32, [None, 4])
kept = tf.shape(tf.where(flags))[0]
y = tf.layers.dropout(x, 0.5, training=options['noise'])
with tf.Session() as session:
    session.run(tf.train.AdamOptimizer().minimize(tf.reduce_mean(y)), {x: batch})
"""
WITH_FACTS = (
    "[None], drop_remainder=True), [7])",
    "[8, 4])  #",
    "npu_data.masked_count(flags)",
    " if options['noise'] else",
)
NOTES: dict[str, Json] = {
    "dataset": {"used": "training", "trained_by": "session", "axis:0.1": 7, "batch": 4, "size": 4, "examples": 40},
    "shape": {"shape": (8, 4), "changes": False},
    "rows": {"rank": 2, "rows": 8, "last": 9, "place": "graph", "dtype": "bool"},
    "value": {"is": "python"},
    "op": {"in": "graph"},
}


def observed(folder: pathlib.Path, script: bytes) -> Json:
    """Write a script and its facts. Return the content of the latter."""
    path = folder / "train.py"
    path.write_bytes(script)
    file = FileFacts(digest(script), {Block(1, 8): 2})
    for place in (asked.place for asked in Converter(Settings()).convert(script, str(path)).asked):
        file.seen[place] = Seen(2, 6)
        for attribute, value in NOTES[place.kind].items():
            file.seen[place].note(attribute, value)
    runs = (ObservedRun(("train.py",), "1.15.5", "3.7.9", 3, "returned"),) * 2
    text = Facts(os.path.realpath(str(folder)), runs, {"train.py": file}).to_text(str(folder / "facts.json"))
    (folder / "facts.json").write_text(text)
    content: Json = json.loads(text)
    return content


def converted(folder: pathlib.Path, capsys: Any) -> tuple[int, str, str]:
    """Convert the script with the facts. Return the exit code, the new script, and what is said."""
    code = main(
        ["-i", str(folder / "train.py"), "-o", str(folder / "out"), "--facts", str(folder / "facts.json"), "-q"]
    )
    new = folder / "out" / "train.py"
    return code, new.read_bytes().decode("utf-8-sig") if new.exists() else "", capsys.readouterr().err


def signed(content: Json) -> str:
    """Return the text of a file of facts with a right checksum."""
    content.pop("checksum", None)
    return json.dumps({**content, "checksum": facts._checksum(content)})


def parts(content: Json) -> list[Json]:
    return list(content["files"]["train.py"]["facts"])


def of(content: Json, kind: str) -> Json:
    return next(part for part in parts(content) if part["kind"] == kind)


def values(content: Json, kind: str, attribute: str, **changes: Any) -> None:
    of(content, kind)["values"][attribute].update(changes)


def only(content: Json, kind: str, attribute: str, value: Any) -> None:
    """Let an attribute have one value, with the bounds of it."""
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    values(content, kind, attribute, distinct=[value], least=number, most=number)


def renamed(content: Json, name: str) -> None:
    content["files"] = {name: content["files"]["train.py"]}


def repeated(content: Json) -> None:
    places = content["files"]["train.py"]["facts"]
    places.append({**copy.deepcopy(of(content, "shape")), "times": 9})


@pytest.mark.parametrize("script", [SCRIPT, SCRIPT.replace("\n", "\r\n"), "\ufeff" + SCRIPT, "größe\t= 'ä'; " + SCRIPT])
def test_facts_as_they_were_observed_decide(script: str, tmp_path: pathlib.Path, capsys: Any) -> None:
    script = script.replace("x = tf.placeholder", "größe\t= 'ä€𝄞'; x = tf.placeholder") if "ö" in script else script
    observed(tmp_path, script.encode())
    code, new, _ = converted(tmp_path, capsys)
    assert code == 0 and all(text in new for text in WITH_FACTS), new


SENSELESS: dict[str, Callable[[Json], Any]] = {
    "no run": lambda c: c.update(runs=[]),
    "a run without an end": lambda c: c["runs"][0].pop("ended"),
    "a run that ended otherwise": lambda c: c["runs"][0].update(ended="well"),
    "a command that is a text": lambda c: c["runs"][0].update(command="train.py"),
    "steps below zero": lambda c: c["runs"][0].update(steps=-1),
    "values without a run": lambda c: of(c, "shape").update(runs=0),
    "more runs than there are": lambda c: of(c, "shape").update(runs=3),
    "fewer times than runs": lambda c: of(c, "shape").update(times=1),
    "runs as a text": lambda c: of(c, "shape").update(runs="2"),
    "a size below zero": lambda c: only(c, "rows", "last", -9),
    "a size as a text": lambda c: only(c, "rows", "last", "9"),
    "a size as a bool": lambda c: only(c, "rows", "last", True),
    "a size with a point": lambda c: only(c, "rows", "last", 9.0),
    "a size in a list": lambda c: only(c, "rows", "last", [9]),
    "a huge size": lambda c: only(c, "rows", "last", 10**30),
    "an infinite size": lambda c: only(c, "rows", "last", math.inf),
    "no size": lambda c: only(c, "rows", "last", math.nan),
    "a length as a bool": lambda c: only(c, "dataset", "axis:0.1", True),
    "a shape of code": lambda c: only(c, "shape", "shape", ["8 + exit()", 4]),
    "a shape of bools": lambda c: only(c, "shape", "shape", [True, 4]),
    "a shape in a shape": lambda c: only(c, "shape", "shape", [[8], 4]),
    "a shape as a number": lambda c: only(c, "shape", "shape", 8),
    "a bool as a number": lambda c: of(c, "dataset")["values"].update(
        lost={"distinct": [0], "more": False, "least": 0, "most": 0}
    ),
    "no values": lambda c: values(c, "shape", "shape", distinct=[]),
    "a value twice": lambda c: values(c, "rows", "last", distinct=[9, 9]),
    "an attribute that is a list": lambda c: of(c, "shape")["values"].update(shape=[]),
    "bounds of other values": lambda c: values(c, "rows", "last", most=12),
    "no bounds": lambda c: values(c, "rows", "last", least=None, most=None),
    "bounds of texts": lambda c: values(c, "value", "is", least=1, most=1),
    "more than were kept": lambda c: values(c, "rows", "last", more=True),
    "more that was dropped": lambda c: values(
        c, "rows", "last", distinct=list(range(MOST_DISTINCT)), least=0, most=MOST_DISTINCT + 5
    ),
    "more as a text": lambda c: values(c, "rows", "last", more="no"),
    "too many values": lambda c: values(c, "rows", "last", distinct=list(range(65)), least=0, most=64),
    "a place of three numbers": lambda c: of(c, "shape")["at"].pop(),
    "a place that ends before it begins": lambda c: of(c, "shape")["at"].reverse(),
    "a place twice": repeated,
    "a block twice": lambda c: c["files"]["train.py"]["blocks"].append([1, 8, 0]),
    "a block that ran more often": lambda c: c["files"]["train.py"].update(blocks=[[1, 8, 3]]),
    "a block of texts": lambda c: c["files"]["train.py"].update(blocks=[["1", "8", "2"]]),
    "no hash": lambda c: c["files"]["train.py"].update(sha256=None),
    "an absolute root": lambda c: c.update(root="/"),
    "a root with a null byte": lambda c: c.update(root="\0"),
    "an absolute name": lambda c: renamed(c, "/train.py"),
    "another spelling of the name": lambda c: renamed(c, "./train.py"),
    "files in a list": lambda c: c.update(files=[c["files"]]),
    "no files": lambda c: c.pop("files"),
}
OTHERS: dict[str, Callable[[Json], Any]] = {
    "version 0": lambda c: c.update(version=0),
    "version 2": lambda c: c.update(version=2),
    "version as a text": lambda c: c.update(version="1"),
    "version as a bool": lambda c: c.update(version=True),
    "another hash": lambda c: c["files"]["train.py"].update(sha256="0" * 64),
    "a root outside": lambda c: c.update(root="../.."),
    "a name outside": lambda c: renamed(c, "../train.py"),
    "a name of a device": lambda c: renamed(c, os.path.relpath("/dev/zero", c["folder"]).replace(os.sep, "/")),
    "a name with a null byte": lambda c: renamed(c, "\0"),
    "a name of a folder": lambda c: renamed(c, "."),
    "a notebook that is gone": lambda c: renamed(c, "train.ipynb"),
    "no schema": lambda c: c.clear(),
}


@pytest.mark.parametrize("change", [*SENSELESS, *OTHERS])
def test_senseless_facts_are_refused_also_with_a_right_checksum(
    change: str, tmp_path: pathlib.Path, capsys: Any
) -> None:
    content = observed(tmp_path, SCRIPT.encode())
    content["folder"] = str(tmp_path)
    {**SENSELESS, **OTHERS}[change](content)
    content.pop("folder", None)
    (tmp_path / "facts.json").write_text(signed(content))
    code, new, said = converted(tmp_path, capsys)
    assert (code, new) == (2, "") and said.count("\n") == 1, said
    assert change in OTHERS or "facts.json is damaged or was edited. Observe again with npu-shim observe" in said


def exchanged(content: Json) -> None:
    """Give each place the values of the kind that comes next."""
    kinds = list(NOTES)
    of_kinds = [of(content, kind)["values"] for kind in kinds]
    next_values = dict(zip(kinds, [*of_kinds[1:], of_kinds[0]]))
    for part in parts(content):
        part["values"] = next_values[part["kind"]]


LIES: dict[str, Callable[[Json], Any]] = {  # with what the tool does not write then
    "a column further": lambda c: [part.update(at=shifted(part["at"], 0, 1)) for part in parts(c)],
    "a line further": lambda c: [part.update(at=shifted(part["at"], 1, 0)) for part in parts(c)],
    "places in a comment": lambda c: [part.update(at=[4, 46 + n, 4, 80]) for n, part in enumerate(parts(c))],
    "places after the end": lambda c: [part.update(at=[99, 1, 99, 9 + n]) for n, part in enumerate(parts(c))],
    "values of another kind": exchanged,
    "other kinds": lambda c: [part.update(kind=part["kind"] + "s") for part in parts(c)],
    "no values": lambda c: [part.update(values={}) for part in parts(c)],
    "no places": lambda c: c["files"]["train.py"].update(facts=[]),
    "no files": lambda c: c.update(files={}),
}


def shifted(at: list[int], lines: int, columns: int) -> list[int]:
    return [at[0] + lines, at[1] + columns, at[2] + lines, at[3] + columns]


@pytest.mark.parametrize("change", LIES)
def test_findings_stay_where_facts_are_of_nothing(change: str, tmp_path: pathlib.Path, capsys: Any) -> None:
    content = observed(tmp_path, SCRIPT.encode())
    LIES[change](content)
    (tmp_path / "facts.json").write_text(signed(content))
    code, new, said = converted(tmp_path, capsys)
    assert code == 0 and not any(text in new for text in WITH_FACTS), new
    plain = Converter(Settings()).convert(SCRIPT.encode(), str(tmp_path / "train.py"))
    assert plain.new is not None and new == plain.new.decode()


BROKEN: dict[str, Callable[[pathlib.Path, str], Any]] = {
    "nothing": lambda path, text: path.write_text(""),
    "half": lambda path, text: path.write_text(text[: len(text) // 2]),
    "all but the end": lambda path, text: path.write_text(text[:-3]),
    "more after the end": lambda path, text: path.write_text(text + "{}"),
    "an edit": lambda path, text: path.write_text(text.replace('"times": 6', '"times": 7', 1)),
    "an empty object": lambda path, text: path.write_text("{}"),
    "null": lambda path, text: path.write_text("null"),
    "another encoding": lambda path, text: path.write_text(text, encoding="utf-16"),
    "a BOM": lambda path, text: path.write_text(text, encoding="utf-8-sig"),
    "a key twice": lambda path, text: path.write_text(text.replace('"version": 1', '"version": 2, "version": 1')),
    "deep lists": lambda path, text: path.write_text("[" * 100_000 + "]" * 100_000),
    "more deep lists": lambda path, text: path.write_text(
        text.replace('"root": "."', f'"root": {"[" * 900}{"]" * 900}')
    ),
    "a folder": lambda path, text: path.unlink() or path.mkdir(),  # type: ignore[func-returns-value]
    "no file": lambda path, text: path.unlink(),
    "a loop of links": lambda path, text: path.unlink() or path.symlink_to(path),  # type: ignore[func-returns-value]
    "another script": lambda path, text: (path.parent / "train.py").write_text(SCRIPT + "\n"),
    "another end of lines": lambda path, text: (path.parent / "train.py").write_bytes(
        SCRIPT.replace("\n", "\r\n").encode()
    ),
    "no script": lambda path, text: (path.parent / "train.py").rename(path.parent / "other.py"),
}


@pytest.mark.parametrize("change", BROKEN)
def test_broken_and_stale_facts_are_refused(change: str, tmp_path: pathlib.Path, capsys: Any) -> None:
    observed(tmp_path, SCRIPT.encode())
    BROKEN[change](tmp_path / "facts.json", (tmp_path / "facts.json").read_text())
    if change == "no script":
        (tmp_path / "train.py").mkdir()
    code, new, said = converted(tmp_path, capsys)
    assert (code, new) == (2, "") and said.count("\n") == 1, said


def test_a_file_of_many_bytes_is_not_read_whole(tmp_path: pathlib.Path, capsys: Any) -> None:
    observed(tmp_path, SCRIPT.encode())
    with (tmp_path / "facts.json").open("r+b") as stream:
        stream.truncate(checks.MOST_BYTES + 100_000_000)
    code, new, said = converted(tmp_path, capsys)
    assert (code, new) == (2, "") and "is no file of facts" in said


def test_runs_of_scripts_in_two_folders_are_kept_apart(tmp_path: pathlib.Path) -> None:
    merged = Facts(str(tmp_path / "one"), (), {"train.py": FileFacts(digest(b"1"))})
    merged.update(Facts(str(tmp_path / "two"), (), {"train.py": FileFacts(digest(b"2"))}))
    merged.update(Facts(str(tmp_path), (), {"one/train.py": FileFacts(digest(b"1"))}))
    assert {name: file.sha256 for name, file in merged.files.items()} == {
        "train.py": digest(b"1"),
        "../two/train.py": digest(b"2"),
    }
    with pytest.raises(UsageError, match="train.py has changed"):
        merged.update(Facts(str(tmp_path), (), {"one/train.py": FileFacts(digest(b"2"))}))
