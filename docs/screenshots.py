"""Screenshots of the pages that commands write, in the Chromium of the test environment "reports".

verify_example.json is a recorded result of ``npu-shim verify -r reports train.py migrated/train.py -- --steps=60``.
There train.py is samples/digits_session/original.py, and migrated/train.py its expected_npu.py with a learning rate
that is 5 % too high.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile

from convert_tf2npu.main import main as convert
from playwright.sync_api import sync_playwright

from npu_shim.rehearsal.reports.verify_page import to_html
from npu_shim.rehearsal.result import Result

CHROMIUM = os.path.join(sys.prefix, "bin", "chromium")  # made by tests/envs/reports.sh
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
]
# A project like that of docs/migrate-tf1.md
_FILES = {
    "train.py": """import tensorflow as tf

from text_cnn import TextCNN


def train(sentences, labels):
    cnn = TextCNN(sequence_length=sentences.shape[1], classes=labels.shape[1])
    train_op = tf.train.AdamOptimizer(1e-3).minimize(cnn.loss)
    session_conf = tf.ConfigProto(allow_soft_placement=True)
    with tf.Session(config=session_conf) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train_op, {cnn.input_x: sentences, cnn.input_y: labels, cnn.keep_prob: 0.5})
""",
    "text_cnn.py": """import tensorflow as tf


class TextCNN(object):
    def __init__(self, sequence_length, classes):
        self.input_x = tf.placeholder(tf.float32, [None, sequence_length], name="input_x")
        self.input_y = tf.placeholder(tf.float32, [None, classes], name="input_y")
        self.keep_prob = tf.placeholder(tf.float32, name="keep_prob")
        hidden = tf.nn.dropout(tf.layers.dense(self.input_x, 128), self.keep_prob)
        self.loss = tf.losses.softmax_cross_entropy(self.input_y, tf.layers.dense(hidden, classes))
""",
}


def take(pages: dict[str, str], size: tuple[int, int] = (1200, 800)) -> dict[str, bytes]:
    """Return PNG images of HTML files.

    Args:
        pages: file names of the images to paths of the HTML files.
        size: width and height in pixels.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_FLAGS)
        page = browser.new_page(viewport={"width": size[0], "height": size[1]})
        images = {}
        for name, path in pages.items():
            page.goto("file://" + path)
            images[name] = page.screenshot()
        browser.close()
    return images


def images() -> dict[str, bytes]:
    """Return the images of the site by their file names."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "text-classification")
        os.makedirs(source)
        for name, text in _FILES.items():
            with open(os.path.join(source, name), "w", encoding="utf-8") as stream:
                stream.write(text)
        with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(
            io.StringIO()
        ):
            convert(["-i", "text-classification", "--no-cache", "--check", "-r", "reports"])
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "verify_example.json")) as stream:
            page = to_html(Result.from_json(json.load(stream)))
        with open(os.path.join(folder, "verify.html"), "w", encoding="utf-8") as stream:
            stream.write(page)
        return take(
            {
                "report.png": os.path.join(folder, "reports", "report.html"),
                "verify.png": os.path.join(folder, "verify.html"),
            }
        )
