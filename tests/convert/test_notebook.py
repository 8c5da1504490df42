"""Notebooks: the cells are one script, and nothing but the changed lines changes in the file."""

from __future__ import annotations

import ast
import json
from typing import Any, Iterator

import pytest
from convert_tf2npu.engine.converter import Converter, FileResult
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.report.explanation import doc_blocks
from convert_tf2npu.rules.registry import Registry
from convert_tf2npu.syntax.ipython_magics import python_of

IMPORT = "import tensorflow as tf"
STAR = "from npu_shim.npu_init import *"


def notebook(*cells: str | list[str], **metadata: Any) -> dict[str, Any]:
    """A notebook of code cells; a text that starts with '# ' and has one line is markdown."""
    made = []
    for cell in cells:
        source = cell.splitlines(True) if isinstance(cell, str) else cell
        if len(source) == 1 and source[0].startswith("# "):
            made.append({"cell_type": "markdown", "metadata": {}, "source": source})
        else:
            made.append(
                {
                    "cell_type": "code",
                    "execution_count": 3,
                    "metadata": {"x": 1e-7},
                    "outputs": [{"output_type": "stream", "text": ["tf.Session()\n", "\u4e2d"]}],
                    "source": source,
                }
            )
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 2}


def converted(content: Any, path: str = "a.ipynb", **style: Any) -> FileResult:
    style = dict({"indent": 1, "ensure_ascii": False}, **style)
    return Converter().convert((json.dumps(content, **style) + "\n").encode("utf-8"), path)


def cells(result: FileResult) -> list[str]:
    assert result.new is not None, result.diagnostics
    return ["".join(cell["source"]) for cell in json.loads(result.new.decode("utf-8"))["cells"]]


def test_names_of_earlier_cells_hold_in_later_ones_and_the_import_goes_to_tensorflow() -> None:
    result = converted(notebook("# Title", IMPORT, "Session = tf.Session", "with Session() as s:\n    s.run(x)"))
    assert cells(result) == [
        "# Title",
        IMPORT + "\n" + STAR,
        "Session = tf.Session",
        "with Session(config=npu_config_proto()) as s:\n    s.run(x)",
    ]
    assert [(d.cell, d.line, d.col, d.code) for d in result.diagnostics] == [(4, 1, 6, "NPU101")]


@pytest.mark.parametrize(
    "style",
    [
        {"indent": 1},
        {"indent": 4},
        {"indent": "\t"},
        {"indent": None},
        {"indent": None, "separators": (",", ":")},
        {"indent": 2, "sort_keys": True},
        {"ensure_ascii": True},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "text",
    [
        IMPORT + '\ns = tf.Session()\nprint("caf\u00e9 \U0001f600 \\n")  # "\u4e2d"',
        'x = "\u00e9"; import tensorflow as tf\n\n"\U0001f600", tf.Session(), "\u00e9"\n',
        IMPORT + "; tf.Session()",
    ],
    ids=["lines", "line end at the end", "one line"],
)
def test_the_file_is_what_jupyter_would_write_of_the_changed_cells(text: str, style: dict[str, Any]) -> None:
    style = dict({"indent": 1, "ensure_ascii": False}, **style)
    content = notebook("# \u00fc", text, "after = 1", [])
    result = converted(content, **style)
    after = cells(result)[1]
    assert STAR in after and "tf.Session(config=npu_config_proto())" in after
    content["cells"][1]["source"] = after.splitlines(True)
    assert result.new == (json.dumps(content, **style) + "\n").encode("utf-8")


def test_a_source_that_is_one_string_stays_one() -> None:
    content = notebook("x")
    content["cells"][0]["source"] = IMPORT + "\ntf.Session()"
    result = converted(content)
    content["cells"][0]["source"] = IMPORT + "\n" + STAR + "\ntf.Session(config=npu_config_proto())"
    assert result.new == (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode("utf-8")


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n", "  "], ids=repr)
def test_the_end_of_the_file_stays(end: str) -> None:
    raw = json.dumps(notebook(IMPORT, "tf.Session()")).encode() + end.encode()
    new = Converter().convert(raw, "a.ipynb").new
    assert new is not None and new[new.rindex(b"}") + 1 :] == end.encode()


@pytest.mark.parametrize(
    "magic",
    [
        "bash",
        "html",
        "javascript",
        "latex",
        "markdown",
        "perl",
        "python2",
        "R",
        "ruby",
        "script sh",
        "sh",
        "sql",
        "svg",
        "system",
        "!",
        "cython",
        "writefile a.py",
        "file a.py",
        "unknown",
    ],
)
def test_cells_in_other_languages_stay(magic: str) -> None:
    text = "%%" + magic + "\nimport tensorflow as tf; tf.Session()\n\"unbalanced ( 'quotes"
    made = cells(converted(notebook(IMPORT, text, "tf.Session()")))
    assert made[1:] == [text, "tf.Session(config=npu_config_proto())"]


@pytest.mark.parametrize("kind", ["markdown", "raw", "heading", "something"])
def test_cells_that_are_no_code_stay(kind: str) -> None:
    content = notebook(IMPORT, "tf.Session()")
    content["cells"].append({"cell_type": kind, "source": ["tf.Session()\n", "("]})
    assert cells(converted(content))[2] == "tf.Session()\n("


def test_the_device_is_opened_behind_cells_before_the_import_of_tensorflow() -> None:
    install = (
        "import sys\ndef run(line):\n    execute(line)\nif 'google.colab' in sys.modules:\n    run('pip install x')\n"
    )
    drive = "from google.colab import drive\ndrive.mount('/content')\n!ls\n"
    train = "model = tf.keras.Sequential()\nmodel.fit(x, x)\n"
    after = cells(converted(notebook(install, drive, IMPORT + "\n", train)))
    assert after[:2] == [install, drive]
    assert after[2:] == [f"{IMPORT}\nimport npu_shim.npu_device as npu\n", "npu.open().as_default()\n" + train]


def test_escapes_and_spellings_of_lines_that_stay_keep_their_bytes() -> None:
    raw = (
        b'\xef\xbb\xbf{"nbformat": 4,\r\n "cells": [ {"source": ["import tensorflow as tf\\n"\r\n  , '
        b'"\\u0074f.Session() # \\u00e9\\/\xc3\xa9" ] ,"cell_type": "code"}],"nbformat_minor": 2}'
    )
    new = Converter().convert(raw, "a.ipynb").new
    assert new == raw.replace(b'\\n"\r\n  , "', b'\\n"\r\n  , "%s\\n"\r\n  , "' % STAR.encode()).replace(
        b"Session(", b"Session(config=npu_config_proto()"
    )


@pytest.mark.parametrize(
    "content",
    [
        notebook(IMPORT, "x = tf.constant(1)"),
        notebook("import numpy"),
        notebook(),
        notebook("# only text"),
        notebook("library(tensorflow); x <- tf$Session()", kernelspec={"language": "R"}),
        notebook("%%writefile train.py\n" + IMPORT + "\ntf.Session()", IMPORT),
        notebook(IMPORT, '%%bash\nprint "x" $(ls)'),
    ],
    ids=["nothing to do", "no TensorFlow", "no cells", "markdown", "another language", "written file", "shell"],
)
def test_a_notebook_without_a_change_stays(content: Any) -> None:
    assert converted(content) == FileResult(None, (), converted(content).calls)


MAGICS = '''%matplotlib inline
!pip install \\
    tensorflow==1.15
files = !ls *.py
?tf.Session
tf.Session??
pip install numpy
text = """
%not magic
"""
y = (10
  % 3)
if files:
    !rm -r \\
      {files}
%time s = tf.Session()
session = tf.Session()  # really?
'''


def test_magics_stay_and_do_not_hide_what_stands_around_them() -> None:
    result = converted(notebook(IMPORT, MAGICS, "%%time\ntf.Session()", "%%time\n" + IMPORT + "\nx = 1"))
    assert cells(result)[1:] == [
        MAGICS.replace("session = tf.Session(", "session = tf.Session(config=npu_config_proto()"),
        "%%time\ntf.Session(config=npu_config_proto())",
        "%%time\n" + IMPORT + "\nx = 1",
    ]


def test_nothing_is_put_before_a_cell_magic_or_into_a_command_of_several_lines() -> None:
    train = 'model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.compile("adam", "mse")\nmodel.fit(x, y)'
    first = IMPORT + "\ntf.disable_v2_behavior()"
    last = "!tar \\\n  -x"
    assert cells(converted(notebook(first, "%%time\n" + train, last))) == [
        first + "\n" + STAR,
        "%%time\nnpu_keras_sess = set_keras_session_npu_config()\n" + train,
        last + "\nclose_session(npu_keras_sess)",
    ]


def test_a_line_before_the_first_one_of_a_cell_is_put_there_once() -> None:
    train = "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.fit(x, y)"
    graphs = "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()"
    assert cells(converted(notebook(graphs, train, "x = 1")))[1:] == [
        "npu_keras_sess = set_keras_session_npu_config()\n" + train,
        "x = 1\nclose_session(npu_keras_sess)",
    ]


@pytest.mark.parametrize(
    "text", [MAGICS, "%%time\n\nx", "\n\n%%capture out\nx = 1\r\ny", "a = 1 + \\\n 2\n%x", "!", "%%time"]
)
def test_masked_text_is_python_of_the_same_shape(text: str) -> None:
    masked = python_of(text)
    assert masked is not None and len(masked) == len(text)
    assert [i for i, c in enumerate(masked) if c in "\r\n"] == [i for i, c in enumerate(text) if c in "\r\n"]
    compile(masked, "cell", "exec")


def test_a_cell_that_is_indented_as_a_whole_is_a_cell() -> None:
    content = notebook(
        IMPORT, "  # run\n  with tf.Session() as s:\n      s.run(x)\n", "  ", " y = tf.Session()", "tf.Session()"
    )
    result = converted(content)
    assert cells(result)[1:] == [
        "  # run\n  with tf.Session(config=npu_config_proto()) as s:\n      s.run(x)\n",
        "  ",
        " y = tf.Session(config=npu_config_proto())",
        "tf.Session(config=npu_config_proto())",
    ]
    assert [(d.cell, d.line, d.col) for d in result.diagnostics] == [(2, 2, 8), (4, 1, 6), (5, 1, 1)]


def test_a_line_before_an_indented_cell_is_indented_as_it() -> None:
    train = " model = tf.keras.Sequential([])\n model.fit(x, y)"
    graphs = "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()"
    assert cells(converted(notebook(graphs, train)))[1] == (
        " npu_keras_sess = set_keras_session_npu_config()\n" + train + "\nclose_session(npu_keras_sess)"
    )


def test_a_cell_that_only_seems_to_be_indented_is_named_with_its_line() -> None:
    result = converted(notebook(IMPORT, "  x = (1\n  y = 2"))
    assert result.unreadable and (result.diagnostics[0].cell, result.diagnostics[0].line) == (2, 1)


def test_a_coding_cookie_in_a_cell_means_nothing() -> None:
    after = cells(converted(notebook("#!x\n#-*- coding: latin-1 -*-\n" + IMPORT + '\ns = "\u00e9", tf.Session()')))
    assert after[0].endswith('s = "\u00e9", tf.Session(config=npu_config_proto())')


def test_converting_again_changes_nothing() -> None:
    once = converted(notebook(IMPORT, "tf.Session()")).new
    assert once is not None
    assert Converter().convert(once, "a.ipynb").new is None


@pytest.mark.parametrize(
    "raw,cell,line,words",
    [
        (b"", 0, 1, "not JSON"),
        (b'{"cells": [\n 1,\n]}', 0, 3, "not JSON"),
        (b"\xff\xfe{}", 0, 1, "not UTF-8"),
        (b"[]", 0, 0, "no list of cells"),
        (b'{"cells": [1]}', 1, 0, "is no object"),
        (b'{"cells": [{"cell_type": "code", "source": 3}]}', 1, 0, "is no text"),
        (b'{"worksheets": [], "nbformat": 3}', 0, 0, "format 3"),
        (b'{"cells": [{"cell_type": "markdown"}, {"cell_type": "code", "source": "x\\nprint 1"}]}', 2, 2, "Python 2"),
        (
            b'{"cells": [{"cell_type": "code", "source": "x\\ny = (\\n"}, {"cell_type": "code", "source": ")"}]}',
            1,
            2,
            "",
        ),
        (b'{"cells": [{"cell_type": "code", "source": "x\\n\'\\ud800\'"}]}', 1, 2, "surrogate"),
        (b"[" * 100000, 0, 0, "too deeply"),
    ],
    ids=lambda value: value[:40].decode("latin-1") if isinstance(value, bytes) else str(value),
)
def test_an_unreadable_cell_is_named_with_its_line(raw: bytes, cell: int, line: int, words: str) -> None:
    result = Converter().convert(raw, "a.ipynb")
    assert result.new is None and result.unreadable and len(result.diagnostics) == 1
    said = result.diagnostics[0]
    assert (said.cell, said.line if line else 0) == (cell, line) and words in said.message


def test_a_place_can_be_excepted_in_a_cell() -> None:
    assert converted(notebook(IMPORT, "tf.Session()  # npu: ignore")).new is None


def examples() -> Iterator[Any]:
    for rule in Registry().rules:
        found = doc_blocks(rule.doc)
        for number, (head, before, then, after) in enumerate(zip(found, found[1:], found[2:], found[3:])):
            if (head.text, then.text) == ("Before", "After"):
                yield pytest.param(rule.code, before.text, after.text, id=f"{rule.code}-{number}")


@pytest.mark.parametrize("code,before,after", list(examples()))
def test_the_examples_of_the_rules_become_the_same_in_cells(code: str, before: str, after: str) -> None:
    lines = before.split("\n")
    starts = sorted({0} | {s.lineno - 1 for s in ast.parse(before).body if not lines[s.lineno - 2].strip()})
    parts = ["\n".join(lines[a:b]) for a, b in zip(starts, starts[1:] + [len(lines)])]
    rule = Registry().by_code(code)
    assert rule is not None
    settings = Settings(**rule.needed_settings)
    raw = json.dumps(notebook(*parts), indent=1).encode()
    result = Converter(settings).convert(raw, "a.ipynb")
    assert "\n".join(cells(result)) == after, result.diagnostics
