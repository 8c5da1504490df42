"""Findings of dynamic sizes, with facts: rewritten where the facts prove it, settled, or reported with what was seen."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from convert_tf2npu.engine.converter import CHANGE, Converter, FileResult
from convert_tf2npu.engine.results import FINDING, UNREACHED
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.facts.facts import Facts, ObservedRun, digest
from convert_tf2npu.facts.seen import Block, FileFacts, Seen
from convert_tf2npu.syntax.source import Source

HEAD = "import tensorflow as tf\n\n"
ROW = {"rows": [3, 5], "rank": 1, "dtype": "float32", "place": "graph"}
MASK = {"rows": [8], "rank": 1, "dtype": "bool", "place": "graph"}


def converted(
    tmp_path: pathlib.Path, text: str, code: str, seen: dict[str, dict[str, Any]], tensorflow: str = "1.15.5"
) -> FileResult:
    """Convert a script with facts about the expressions that it asks for, by their text; all others have those of ""."""
    path, raw = str(tmp_path / "train.py"), text.encode("utf-8")
    source, file = Source(raw), FileFacts(digest(raw), {Block(1, 99): 2})
    for start, end, place, _ in Converter(Settings(select=(code,))).convert(raw, path).asked:
        values = seen.get(source.text[start:end], seen.get("", {}))
        noted = file.seen[place] = Seen(2, 4)
        for attribute, value in values.items():
            for one in value if isinstance(value, list) else [value]:
                noted.note(attribute, one)
    run = ObservedRun(("train.py",), tensorflow, "3.7.9", 1, "returned")
    facts = Facts(str(tmp_path), (run, run), {"train.py": file})
    return Converter(Settings(select=(code,), facts=facts)).convert(raw, path)


def new_text(result: FileResult) -> str:
    return (result.new or b"").decode("utf-8").split("\n\n", 1)[1]


def body(*lines: str) -> str:
    return HEAD + "def f(x, y, m, k):\n" + "".join(f"    {line}\n" for line in lines)


REWRITTEN = [
    ("return tf.reduce_mean(tf.boolean_mask(x, m))", "return npu_data.masked_mean(x, m)"),
    ("return tf.reduce_sum(tf.boolean_mask(x, x > 0.0), axis=0)", "return npu_data.masked_sum(x, x > 0.0, axis=0)"),
    (
        "return tf.cast(tf.reduce_max(tf.boolean_mask(mask=m, tensor=x)), k)",
        "return tf.cast(npu_data.masked_max(x, m), k)",
    ),
    (
        "return tf.reduce_sum(tf.abs(tf.boolean_mask(x, m) - tf.boolean_mask(y, m)))",
        "return npu_data.masked_sum(tf.abs(npu_data.masked_rows(x, m) - npu_data.masked_rows(y, m)), m)",
    ),
    (
        "with tf.name_scope('a'):\n        r = tf.boolean_mask(x, m)\n    r *= 2\n    return tf.reduce_min(r)",
        "with tf.name_scope('a'):\n        r = npu_data.masked_rows(x, m)\n    r *= 2\n"
        "    return npu_data.masked_min(r, m)",
    ),
    (
        "p = tf.where(m)\n    return tf.reduce_sum(tf.gather_nd(x, p))",
        "p = m\n    return npu_data.masked_sum(npu_data.masked_rows(x, p), p)",
    ),
    (
        "p = tf.squeeze(tf.where(m), 1)\n    return tf.reduce_sum(tf.gather(x, p))",
        "p = m\n    return npu_data.masked_sum(npu_data.masked_rows(x, p), p)",
    ),
    (
        "p = tf.where(m)[:, 0]\n    p = tf.cast(p, tf.int32)\n    return tf.reduce_sum(tf.gather(x, p))",
        "p = m\n    p = p\n    return npu_data.masked_sum(npu_data.masked_rows(x, p), p)",
    ),
    ("return tf.shape(tf.where(m))[0]", "return npu_data.masked_count(m)"),
    (
        "r = tf.boolean_mask(x, m)\n    return tf.reduce_mean(r) if tf.size(r) > 0 else tf.shape(r)[0]",
        "r = npu_data.masked_rows(x, m)\n"
        "    return npu_data.masked_mean(r, m) if npu_data.masked_count(m) > 0 else npu_data.masked_count(m)",
    ),
    (
        "p = tf.where(\n        m\n        | k)\n    return tf.reduce_sum(tf.gather_nd(x, p))",
        "p = (m\n        | k)\n    return npu_data.masked_sum(npu_data.masked_rows(x, p), p)",
    ),
]


@pytest.mark.parametrize("before, after", REWRITTEN)
def test_reductions_take_the_mask(before: str, after: str, tmp_path: pathlib.Path) -> None:
    seen = {"": ROW, "m": MASK, "x > 0.0": MASK, "m\n        | k": MASK}
    if "gather" in before:
        seen["x"] = {**ROW, "rows": [8]}
    code = "NPU230" if "tf.where" in before else "NPU231"
    result = converted(tmp_path, body(before), code, seen)
    assert new_text(result) == body(after).split("\n\n", 1)[1]
    assert [(d.kind, d.runs) for d in result.diagnostics] == [(CHANGE, 2)]


LOSSES = [
    "tf.nn.sparse_softmax_cross_entropy_with_logits(labels={y}, logits={x})",
    "tf.keras.losses.sparse_categorical_crossentropy({y}, {x}, from_logits=True)",
    "tf.keras.losses.sparse_categorical_crossentropy({y}, y_pred={x} * 2.0)",
]
LOGITS = {**ROW, "rank": 2, "rows": [8]}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rank", [1, 2])
def test_losses_of_classes_take_the_mask(loss: str, rank: int, tmp_path: pathlib.Path) -> None:
    text = body(
        "p = tf.squeeze(tf.where(m), 1)",
        f"return tf.reduce_mean({loss.format(x='tf.gather(x, p)', y='tf.gather(y, p)')})",
    )
    loss = loss.format(x="npu_data.masked_rows(x, p)", y="npu_data.masked_rows(y, p)")
    seen = {"": ROW, "m": MASK, "x": LOGITS, "y": {**ROW, "rows": [8], "rank": rank, "dtype": "int32"}}
    seen["tf.gather(x, p)"] = {**LOGITS, "rows": [3, 5]}
    seen["tf.gather(y, p)"] = {**ROW, "rank": rank}
    result = converted(tmp_path, text, "NPU230", seen)
    after = body("p = m", f"return npu_data.masked_mean({loss}, p)")
    assert new_text(result) == after.split("\n\n", 1)[1] if rank == 1 else not result.edits


CLASSES = """r = tf.boolean_mask(x, m)
    y = tf.one_hot(tf.boolean_mask(y, m), depth=r.shape[-1])
    r = tf.keras.losses.categorical_crossentropy(y, r, from_logits=True)
    return tf.reduce_sum(r) / tf.cast(tf.size(r), tf.float32)"""


@pytest.mark.parametrize("rank", [1, 2])
def test_losses_of_one_hot_classes_take_the_mask(rank: int, tmp_path: pathlib.Path) -> None:
    seen = {"": ROW, "m": MASK, "tf.boolean_mask(x, m)": {**ROW, "rank": 2}}
    seen["tf.boolean_mask(y, m)"] = {**ROW, "rank": rank, "dtype": "int32"}
    result = converted(tmp_path, body(CLASSES), "NPU231", seen)
    after = body(CLASSES.replace("tf.boolean_mask", "npu_data.masked_rows"))
    after = after.replace("tf.reduce_sum(r)", "npu_data.masked_sum(r, m)").replace(
        "tf.size(r)", "npu_data.masked_count(m)"
    )
    assert new_text(result) == after.split("\n\n", 1)[1] if rank == 1 else not result.edits
    wide = {**seen, "r": {**ROW, "rows": [8]}}  # the rows that are counted are not those of the mask
    assert not converted(tmp_path, body(CLASSES), "NPU231", wide).edits


@pytest.mark.parametrize("rank", [1, 2])
def test_losses_of_keras_reduce_no_rows(rank: int, tmp_path: pathlib.Path) -> None:
    text = body("return tf.reduce_sum(tf.keras.losses.mse(tf.boolean_mask(x, m), tf.boolean_mask(y, m)))")
    seen = {"": ROW, "m": MASK}
    seen.update((f"tf.boolean_mask({name}, m)", {**ROW, "rank": rank}) for name in "xy")
    rows = "npu_data.masked_rows(x, m), npu_data.masked_rows(y, m)"
    after = body(f"return npu_data.masked_sum(tf.keras.losses.mse({rows}), m)")
    result = converted(tmp_path, text, "NPU231", seen)
    assert new_text(result) == after.split("\n\n", 1)[1] if rank == 2 else not result.edits


REFUSED = [
    "return tf.boolean_mask(x, m)",
    "r = tf.boolean_mask(x, m)\n    g(r)\n    return tf.reduce_sum(r)",
    "r = tf.boolean_mask(x, m)\n    k.rows = r\n    return tf.reduce_sum(r)",
    "r = tf.boolean_mask(x, m)\n    return tf.reduce_sum(r), tf.shape(r)",
    "r = tf.boolean_mask(x, m)\n    m = tf.logical_not(m)\n    return tf.reduce_sum(r)",
    "r = tf.boolean_mask(x, m)\n    if k:\n        r = r * 2\n    return tf.reduce_sum(r)",
    "if k:\n        x = tf.boolean_mask(x, m)\n        y = tf.reduce_sum(x)\n    return x",
    "for i in range(3):\n        y = y + x\n        x = tf.boolean_mask(y, m)\n        y = tf.reduce_sum(x)\n    return y",
    "r = tf.boolean_mask(x, m)\n    return tf.reduce_sum(r) + tf.map_fn(lambda v: tf.reduce_sum(r) + v, y)",
    "h = lambda: r\n    r = tf.boolean_mask(x, m)\n    tf.reduce_sum(r)\n    return h()",
    "r = tf.boolean_mask(x, m)\n    s = tf.boolean_mask(y, k)\n    return tf.reduce_sum(r - s)",
    "s = tf.boolean_mask(y, k)\n    r = tf.boolean_mask(x, m)\n    return tf.reduce_sum(r - s)",
    "return tf.reduce_sum(tf.matmul(tf.boolean_mask(x, m), y))",
    "return tf.reduce_sum(tf.boolean_mask(x, m)) / tf.size(tf.boolean_mask(x, m))",
    "r = tf.boolean_mask(x, m)\n    return tf.reduce_sum(r) / r.shape[0]",
    "return tf.reduce_sum(tf.one_hot(tf.boolean_mask(x, m), 3, axis=0))",
    "return tf.reduce_sum(tf.one_hot(tf.boolean_mask(x, m), 3, 1.0, 0.0, k))",
    "return tf.reduce_sum(tf.one_hot(y, tf.boolean_mask(x, m)))",
    "return tf.reduce_sum(tf.boolean_mask(x, tf.random.uniform([8]) > y) - tf.boolean_mask(y, x > m))",
    "return tf.reduce_sum(tf.boolean_mask(x, m, axis=1))",
    "return tf.reduce_sum(tf.boolean_mask(x, m), axis=1)",
    "return tf.reduce_sum(tf.boolean_mask(tf.boolean_mask(x, m), k))",
    "r = tf.boolean_mask(x, m)\n    return tf.reduce_sum(r if k else -r)",
    "return tf.reduce_sum(sorted(tf.boolean_mask(x, m)))",
    "return tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.boolean_mask(x, m), logits=y))",
    "return tf.reduce_sum(tf.keras.losses.mse(tf.boolean_mask(x, m), tf.boolean_mask(y, m), k))",
]


@pytest.mark.parametrize("text", REFUSED)
def test_rows_that_are_not_followed_stay(text: str, tmp_path: pathlib.Path) -> None:
    result = converted(tmp_path, body(text), "NPU231", {"": ROW, "m": MASK, "k": MASK})
    assert not result.edits and result.findings
    assert "(seen: 3 to 5)" in result.diagnostics[0].message


CONTRADICTED = [
    {"": ROW, "m": {**MASK, "dtype": "int32"}},
    {"": ROW, "m": {**MASK, "rank": [1, 2]}},
    {"": ROW, "m": {}},
    {"": ROW, "m": MASK, "r + y": {**ROW, "rank": 2}},
    {"": ROW, "m": MASK, "r + y": {**ROW, "rows": [8]}},
    {"": ROW, "m": MASK, "r + y": {**ROW, "dtype": "int32"}},
    {"": {**ROW, "rows": list(range(80))}, "m": MASK, "r + y": {**ROW, "rows": list(range(81))}},
]


@pytest.mark.parametrize("seen", CONTRADICTED)
def test_facts_that_contradict_the_source_prove_nothing(
    seen: dict[str, dict[str, Any]], tmp_path: pathlib.Path
) -> None:
    text = body("r = tf.boolean_mask(x, m)", "return tf.reduce_mean(r + y)")
    assert converted(tmp_path, text, "NPU231", {"": ROW, "m": MASK}).edits
    result = converted(tmp_path, text, "NPU231", seen)
    assert not result.edits and result.findings


def test_positions_in_a_longer_tensor_stay(tmp_path: pathlib.Path) -> None:
    text = body("return tf.reduce_sum(tf.gather_nd(x, tf.where(m)))")
    longer = {"": ROW, "m": MASK, "x": {**ROW, "rows": [9]}}
    assert not converted(tmp_path, text, "NPU230", longer).edits


def test_the_finding_without_facts_is_as_ever() -> None:
    text = body("return tf.reduce_mean(tf.boolean_mask(x, m))").encode()
    (finding,) = Converter(Settings(select=("NPU231",))).convert(text).diagnostics
    assert finding.message.startswith("dynamic number of rows: the NPU recompiles for each. Write weights =")


@pytest.mark.parametrize("code, call", [("NPU231", "tf.boolean_mask(x, m)"), ("NPU230", "tf.where(m)")])
@pytest.mark.parametrize("place, count", [("data", 0), ("numpy", 0), (["data", "graph"], 1), (["eager", "graph"], 1)])
def test_sizes_of_the_host_are_not_reported(
    code: str, call: str, place: str, count: int, tmp_path: pathlib.Path
) -> None:
    result = converted(tmp_path, body(f"return {call}"), code, {"": {**ROW, "rows": 4, "place": place}})
    assert len(result.findings) == count
    assert count == 0 or "(seen: always 4)" in result.diagnostics[0].message


@pytest.mark.parametrize("size, count", [(4, 0), ([4, 5], 1)])
def test_one_size_of_eager_code_is_not_reported(size: int | list[int], count: int, tmp_path: pathlib.Path) -> None:
    for code, call in [("NPU231", "tf.boolean_mask(x, m)"), ("NPU233", "tf.image.non_max_suppression(x, y, 10)")]:
        seen = {"": {**ROW, "rows": size, "place": "eager"}}
        assert len(converted(tmp_path, body(f"return {call}"), code, seen).findings) == count


VECTOR = {"rows": [8], "rank": 1, "dtype": "float32", "place": "graph"}
LARGEST = [
    (
        "v, _ = tf.nn.top_k(-x, k=tf.reduce_sum(m))\n    return tf.reduce_mean(v) + tf.reduce_max(v, axis=-1)",
        "v, v_mask = -x, npu_data.top_k_mask(-x, tf.reduce_sum(m))\n"
        "    return npu_data.masked_mean(v, v_mask) + npu_data.masked_max(v, v_mask, axis=-1)",
    ),
    (
        "v = tf.nn.top_k(k=tf.reduce_sum(m), input=x, sorted=False).values\n    return tf.reduce_sum(v)",
        "v, v_mask = x, npu_data.top_k_mask(x, tf.reduce_sum(m))\n    return npu_data.masked_sum(v, v_mask)",
    ),
    (
        "return tf.reduce_min(tf.nn.top_k(x, tf.reduce_sum(m))[0])",
        "return npu_data.masked_min(x, npu_data.top_k_mask(x, tf.reduce_sum(m)))",
    ),
]


@pytest.mark.parametrize("before, after", LARGEST)
def test_reductions_take_the_mask_of_the_largest(before: str, after: str, tmp_path: pathlib.Path) -> None:
    result = converted(tmp_path, body(before), "NPU235", {"": VECTOR})
    assert new_text(result) == body(after).split("\n\n", 1)[1]
    assert [(d.kind, d.runs) for d in result.diagnostics] == [(CHANGE, 2)]
    for wrong in ({"rank": 2}, {"rank": [1, None]}, {"rows": [7, 8]}, {"dtype": "int32"}, {"place": "data"}):
        assert not converted(tmp_path, body(before), "NPU235", {"": {**VECTOR, **wrong}}).edits


TOP = "v, i = tf.nn.top_k(x, tf.reduce_sum(m))"


@pytest.mark.parametrize(
    "text",
    [
        f"{TOP}\n    return v",
        f"{TOP}\n    return tf.reduce_sum(v), i",
        f"{TOP}\n    return tf.reduce_sum(v) + v[-1]",
        f"{TOP}\n    a = tf.reduce_sum(v)\n    v *= 2.0\n    return a + tf.reduce_sum(v)",
        f"v = y\n    if k:\n        {TOP}\n    return tf.reduce_sum(v)",
        f"global v\n    {TOP}\n    return tf.reduce_sum(v)",
        f"{TOP}\n    v_mask = 1\n    return tf.reduce_sum(v) + v_mask",
        f"{TOP}\n    return tf.reduce_sum(v * 2.0)",
        f"{TOP}\n    return lambda: v",
        "v, i = tf.nn.top_k(g(x), tf.reduce_sum(m))\n    return tf.reduce_sum(v)",
        "v = tf.nn.top_k(x, tf.reduce_sum(m))\n    return tf.reduce_sum(v[0])",
        "k.v, i = tf.nn.top_k(x, tf.reduce_sum(m))\n    return tf.reduce_sum(k.v)",
    ],
)
def test_the_largest_values_that_are_used_in_another_way_stay(text: str, tmp_path: pathlib.Path) -> None:
    result = converted(tmp_path, body(text), "NPU235", {"": VECTOR})
    assert not result.edits and result.findings


SIZES = {
    "NPU232": ("tf.unique(x)", "(seen: 2 to 7)"),
    "NPU233": ("tf.image.non_max_suppression(x, y, 10)", "(seen: 2 to 7)"),
    "NPU235": ("tf.nn.top_k(x, tf.reduce_sum(y))", "(seen: 1 to 3)"),
    "NPU239": ("tf.sequence_mask(x)", "(seen: 1 to 3)"),
}


@pytest.mark.parametrize("code", SIZES)
def test_findings_name_the_sizes(code: str, tmp_path: pathlib.Path) -> None:
    call, said = SIZES[code]
    seen = {"rows": [2, 7], "last": [3, 1], "place": "graph"}
    result = converted(tmp_path, body(f"return {call}"), code, {"": seen})
    assert [d.message.endswith(said) for d in result.diagnostics] == [True]
    result = converted(tmp_path, body(f"return {call}"), code, {"": {**seen, "place": "data"}})
    assert result.diagnostics == ()


def test_a_mask_of_one_width_does_not_get_it(tmp_path: pathlib.Path) -> None:
    seen = {"": {"rows": [8], "last": 5, "rank": 2, "dtype": "bool", "place": "graph"}}
    result = converted(tmp_path, body("return tf.sequence_mask(x, dtype=k)"), "NPU239", seen)
    assert not result.edits and [d.message.endswith("(seen: always 5)") for d in result.diagnostics] == [True]


CHOOSING = "w = tf.sequence_mask(m)\n    x = tf.where(w, x, y)\n    return tf.nn.softmax(x)"
WIDTHS = {"": {"rows": [8], "last": [5, 7], "rank": 3, "dtype": "bool", "place": "graph"}}


def test_a_mask_is_as_wide_as_the_values_that_it_chooses(tmp_path: pathlib.Path) -> None:
    result = converted(tmp_path, body(CHOOSING), "NPU239", WIDTHS)
    after = body(CHOOSING.replace("tf.sequence_mask(m)", "npu_data.sequence_mask_like(m, x)"))
    assert new_text(result) == after.split("\n\n", 1)[1]
    named = CHOOSING.replace("(m)", "(lengths=m)")
    assert "npu_data.sequence_mask_like(lengths=m, values=x)" in new_text(
        converted(tmp_path, body(named), "NPU239", WIDTHS)
    )
    for wrong in ({"rank": 1}, {"rank": [2, 3]}, {"place": "eager"}, {"place": ["graph", "data"]}):
        assert not converted(tmp_path, body(CHOOSING), "NPU239", {"": {**WIDTHS[""], **wrong}}).edits
    for wrong in ({"rank": 2}, {"last": 5}, {"last": [5, 7, 8]}):
        assert not converted(tmp_path, body(CHOOSING), "NPU239", {**WIDTHS, "x": {**WIDTHS[""], **wrong}}).edits
    assert not converted(tmp_path, body(CHOOSING), "NPU239", WIDTHS, "2.6.5").edits


@pytest.mark.parametrize(
    "text",
    [
        "w = tf.sequence_mask(m)\n    return tf.where(w, x, y), tf.shape(w)",
        "w = tf.sequence_mask(m)\n    return tf.where(w)",
        "w = tf.sequence_mask(m)\n    return tf.where(y, w, x)",
        "w = tf.sequence_mask(m)\n    return tf.where(w, x + 1, y)",
        "w = tf.sequence_mask(m)\n    x = y\n    return tf.where(w, x, y)",
        "w = tf.sequence_mask(m)\n    if k:\n        x = tf.where(w, x, y)\n    return x",
        "w = tf.sequence_mask(m, dtype=k)\n    return tf.where(w, x, y)",
        "w = k\n    if k:\n        w = tf.sequence_mask(m)\n        x = tf.where(w, x, y)\n    return x",
        "return tf.where(tf.sequence_mask(m), x, y)",
    ],
)
def test_a_mask_of_other_uses_keeps_its_width(text: str, tmp_path: pathlib.Path) -> None:
    result = converted(tmp_path, body(text), "NPU239", WIDTHS)
    assert not result.edits and [d.message.endswith("(seen: 5 to 7)") for d in result.diagnostics] == [True]


HOST = [
    ("NPU236", "tf.strings.lower(x)", ["data", "eager"], 0),
    ("NPU236", "tf.strings.lower(x)", ["data", "graph"], 1),
    ("NPU222", "tf.math.is_nan(x)", ["data"], 0),
    ("NPU222", "tf.math.is_nan(x)", ["eager"], 1),
]


@pytest.mark.parametrize("code, call, place, count", HOST)
def test_checks_and_strings_of_the_host_are_not_reported(
    code: str, call: str, place: list[str], count: int, tmp_path: pathlib.Path
) -> None:
    text = body(f"a = {call}", f"return a, {call.replace('x', 'y')}")
    assert len(converted(tmp_path, text, code, {"": {"place": place}}).findings) == count
    rest = {"": {"place": "data"}, call.replace("x", "y"): {"place": "graph"}}
    (finding,) = converted(tmp_path, text, code, rest).diagnostics
    assert finding.line == 5


@pytest.mark.parametrize("code", ["NPU236", "NPU222"])
def test_all_calls_are_asked_for(code: str) -> None:
    call = {"NPU236": "tf.strings.lower(x)", "NPU222": "tf.math.is_nan(x)"}[code]
    result = Converter(Settings(select=(code,))).convert(body(f"a = {call}", f"return {call}").encode())
    assert len(result.diagnostics) == 1 and len(result.asked) == 2


DOUBLE = {"dtype": "float64", "place": "graph", "mixed": False, "sums": False, "large": False, "region": 0}
A, B = "tf.cast(x, tf.float64)", "tf.constant(0.5, dtype='float64')"
TYPES = [
    ({"": DOUBLE}, True),
    ({"": DOUBLE, B: {**DOUBLE, "region": 1}}, True),
    ({"": DOUBLE, B: {**DOUBLE, "mixed": True}}, False),
    ({"": DOUBLE, B: {**DOUBLE, "mixed": [False, True]}}, False),
    ({"": {**DOUBLE, "place": "eager"}, B: {**DOUBLE, "place": ["graph", "eager"]}}, True),
    ({"": DOUBLE, B: {**DOUBLE, "place": ["graph", "data"]}}, False),
    ({"": DOUBLE, B: {**DOUBLE, "place": ["eager", "numpy"]}}, False),
    ({"": DOUBLE, B: {**DOUBLE, "sums": True}}, False),
    ({"": DOUBLE, B: {**DOUBLE, "large": [False, True]}}, False),
    ({"": DOUBLE, B: {**DOUBLE, "dtype": ["float64", "float32"]}}, False),
    ({"": DOUBLE, B: {"dtype": "float64", "place": "graph"}}, False),
    ({"": DOUBLE, B: {"dtype": "float64", "place": "eager", "mixed": True}}, False),
]


@pytest.mark.parametrize("seen, is_changed", TYPES)
def test_doubles_become_float32_together(
    seen: dict[str, dict[str, Any]], is_changed: bool, tmp_path: pathlib.Path
) -> None:
    text = body(f"return {A} + {B}")
    result = converted(tmp_path, text, "NPU221", seen)
    if is_changed:
        assert new_text(result) == text.split("\n\n", 1)[1].replace("float64", "float32")
    else:
        assert not result.edits and len(result.findings) == 2


@pytest.mark.parametrize(
    "text, seen, ending",
    [
        (A, {"sums": True}, "(seen: a value carried from step to step)"),
        (A, {"large": True}, "(seen: values that float32 cannot hold)"),
        (A, {"mixed": True}, "(seen: float64 of other calls, which it meets)"),
        (A, {"dtype": "float32", "mixed": True}, "Write tf.float32"),
        ("tf.signal.rfft(x)", {"dtype": ["complex64"]}, "(seen: complex64)"),
    ],
)
def test_the_finding_says_why_facts_do_not_settle_it(
    text: str, seen: dict[str, Any], ending: str, tmp_path: pathlib.Path
) -> None:
    (finding,) = converted(tmp_path, body(f"return {text}"), "NPU221", {"": {**DOUBLE, **seen}}).diagnostics
    assert finding.message.endswith(ending)


def test_an_array_of_eager_code_gets_the_type(tmp_path: pathlib.Path) -> None:
    text = "import numpy as np\n" + body("a = np.zeros([3])", "return tf.convert_to_tensor(a)")
    result = converted(tmp_path, text, "NPU221", {"": {**DOUBLE, "place": "eager"}})
    assert "return tf.convert_to_tensor(a, dtype=tf.float32)" in new_text(result)


def test_doubles_of_a_call_that_cannot_change_stay(tmp_path: pathlib.Path) -> None:
    text = body(f"return {A} + tf.get_variable('a', initializer=y, dtype=tf.float64)")
    assert not converted(tmp_path, text, "NPU221", {"": DOUBLE}).edits
    assert not converted(tmp_path, body(f"return {A} + {B}  # npu: ignore[NPU221]"), "NPU221", {"": DOUBLE}).edits


def test_doubles_of_the_input_pipeline_are_not_reported(tmp_path: pathlib.Path) -> None:
    assert converted(tmp_path, body(f"return {A}"), "NPU221", {"": {**DOUBLE, "place": "data"}}).diagnostics == ()


@pytest.mark.parametrize(
    "seen, kind",
    [
        ({"place": "graph", "dtype": "float32"}, UNREACHED),
        ({"place": "graph", "rank": None}, FINDING),
        ({"place": "python"}, FINDING),
        (ROW, FINDING),
    ],
)
def test_a_size_that_no_observed_run_computed_counts_as_not_reached(
    seen: dict[str, Any], kind: str, tmp_path: pathlib.Path
) -> None:
    result = converted(tmp_path, body("return tf.boolean_mask(x, m)"), "NPU231", {"": seen})
    assert [d.kind for d in result.diagnostics] == [kind]
