"""The HTML report of a small project, opened in a headless Chromium."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
from typing import Any, Callable, Iterator

import pytest
from convert_tf2npu.main import main
from playwright.sync_api import Browser, Page

TRAIN = """import tensorflow as tf

def loss(x):
    y = tf.nn.dropout(x, keep_prob=0.9)
    return tf.reduce_mean(tf.abs(y))

with tf.Session() as sess:
    sess.run(loss(tf.zeros([2])))
    found = tf.where(sess.run(x) > 0)
"""
QUEUES = "import tensorflow as tf\n\nx = tf.train.batch([y], 4)\nindex = tf.where(x > 0)\nz = tf.abs(x)\n"
NASTY = 'import tensorflow as tf\n\ns = "</script><script>alert(1)</script>"; tf.Session()  # <b>&amp;\n'
FILES: dict[bytes, bytes] = {
    b"train.py": TRAIN.encode(),
    b"data/queues.py": QUEUES.encode(),
    b"data/plain.py": b"import tensorflow as tf\n\nx = tf.abs(-1)\n",
    b'odd "names"/<script>alert(1)<.py': NASTY.encode(),
    b"bytes \xff.py": b"import tensorflow as tf\ntf.Session()\n",
    b"line\nbreak.py": b"import tensorflow as tf\ntf.Session()\n",
    b"python2.py": b'import tensorflow as tf\nprint "loss"\n',
    b"latin.py": '# -*- coding: latin-1 -*-\nimport tensorflow as tf\ns = "\xe9"; tf.Session()\n'.encode("latin-1"),
    b"long.py": b'import tensorflow as tf\nx = "' + b"x" * 50_000 + b'"; tf.Session()\n',
    b"nb.ipynb": json.dumps(
        {
            "cells": [
                {"cell_type": "markdown", "source": "a"},
                {"cell_type": "code", "source": ["import tensorflow as tf\n", "tf.Session()\n"]},
            ]
        }
    ).encode(),
}
Opener = Callable[..., Page]


def make_report(folder: pathlib.Path, files: dict[bytes, bytes]) -> pathlib.Path:
    """The HTML report of a project with these files."""
    for name, raw in files.items():
        path = os.path.join(os.fsencode(folder), b"src", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(raw)
    with contextlib.redirect_stdout(io.StringIO()):
        main(["-i", str(folder / "src"), "--check", "-r", str(folder / "reports")])
    return folder / "reports" / "report.html"


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The report of the project above."""
    return make_report(tmp_path_factory.mktemp("project"), FILES)


@pytest.fixture(scope="session")
def tab(browser: Browser) -> Page:
    """One tab for all tests: a new one takes twice as long as a report in it."""
    return browser.new_page()


@pytest.fixture
def open_page(tab: Page, report: pathlib.Path) -> Iterator[Opener]:
    """A function that opens a report; the page may ask for nothing else, and must not complain."""
    wrong: list[str] = []
    allowed = {report.as_uri(), "about:blank"}
    heard: dict[str, Callable[[Any], Any]] = {
        "request": lambda request: request.url.split("#")[0] in allowed or wrong.append(request.url),
        "console": lambda message: wrong.append(message.text),
        "pageerror": lambda error: wrong.append(str(error)),
        "dialog": lambda dialog: (wrong.append(dialog.message), dialog.dismiss()),
    }

    def opener(anchor: str = "", path: pathlib.Path = report, width: int = 1400, scheme: str = "light") -> Page:
        allowed.add(path.as_uri())
        tab.set_viewport_size({"width": width, "height": 900})
        tab.emulate_media(media="screen", color_scheme=scheme)
        tab.goto("about:blank")  # from the same report, the browser would only go to the anchor
        tab.goto(path.as_uri() + anchor)
        return tab

    for event, listener in heard.items():
        tab.on(event, listener)
    yield opener
    for event, listener in heard.items():
        tab.remove_listener(event, listener)
    assert wrong == []
