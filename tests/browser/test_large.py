"""The HTML report of a project of 2,000 files, and of projects with next to nothing."""

from __future__ import annotations

import pathlib

import pytest

from .conftest import make_report

SCRIPT = """import tensorflow as tf

def model_%(n)d(x):
    x = tf.nn.dropout(tf.reshape(x, [-1, %(n)d]), keep_prob=0.9)
    return tf.reduce_mean(tf.abs(x)), tf.where(x > 0), tf.op_%(n)d(x)

with tf.Session() as sess:
    sess.run(model_%(n)d(tf.zeros([%(n)d])))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    files = {b"part%02d/model_%d.py" % (n // 100, n): (SCRIPT % {"n": n}).encode() for n in range(2000)}
    return make_report(tmp_path_factory.mktemp("large"), files)


@pytest.mark.nightly
def test_a_large_report_is_whole_and_can_be_searched(large: pathlib.Path, open_page) -> None:
    page = open_page(path=large)
    assert page.locator(".calls").inner_text().startswith("16000 TensorFlow calls in 2000 files: 10000 fine, 4000")
    assert (page.locator(".file").count(), page.locator(".apis tbody tr").count()) == (2000, 2007)
    page.locator("#search").fill("model_1234.py")
    assert page.locator(".file:visible").count() == 1
    assert page.locator("#shown").inner_text() == "3 places in 1 file, 8 APIs"
    page.locator(".file:visible summary").click()
    assert page.locator(".diff:visible tr.replace").count() == 2
    page.keyboard.press("Escape")
    page.locator('[id="api-tensorflow.reshape"] .expand').click()
    assert page.locator(".spots:visible li").count() == 2000


@pytest.mark.parametrize(
    "files, sentence",
    [
        ({b"notes.txt": b"nothing\n"}, "No TensorFlow call was found."),
        ({b"a.py": b"import os\n"}, "No TensorFlow call was found."),
        ({b"a.py": b"x = (\n", b"b.ipynb": b"{"}, "No TensorFlow call was found."),
        (
            {b"a.py": b"import tensorflow as tf\ntf.abs(1)\n"},
            "1 TensorFlow call in 1 file: 1 fine, 0 rewritten, 0 need a manual change",
        ),
    ],
    ids=["no script", "no TensorFlow", "only what cannot be read", "all fine"],
)
def test_a_small_report_is_whole(files, sentence: str, tmp_path: pathlib.Path, open_page) -> None:
    page = open_page(path=make_report(tmp_path, files))
    assert page.locator(".calls").inner_text() == sentence
    for key in ("/", "Escape", "j", "k", "o", "1", "2", "3", "4", "?"):
        page.keyboard.press(key)
    assert page.get_by_text("The tool found none.").is_visible()
