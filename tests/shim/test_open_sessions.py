"""Sessions that a script never closes are closed when Python ends, before the vendor's package closes the device."""

from __future__ import annotations

import gc
import pathlib
import subprocess
import weakref
from typing import Callable

import pytest
import tensorflow as tf

import npu_shim

pytestmark = pytest.mark.twice

v1 = tf.compat.v1
Python = Callable[..., "subprocess.CompletedProcess[str]"]

HEAD = """
import atexit, os, threading
import tensorflow as tf
v1 = tf.compat.v1
closed = []
close = v1.Session.__mro__[1].close
v1.Session.__mro__[1].close = lambda self: (closed.append((self.name, self._closed)), close(self))
atexit.register(lambda: print('of the device:', sorted(closed)))  # as of the vendor's package
import npu_shim
npu_shim.install()
atexit.register(lambda: print('of the script:', sorted(closed)))

class Model:
    def __init__(self, name, make=v1.Session):
        with tf.Graph().as_default() as graph:
            self.y = tf.constant(2.0) + 1.0
        self.sess = make(graph=graph)
        self.sess.name = name
        assert self.sess.run(self.y) == 3.0
"""


def ends(python: Python, folder: pathlib.Path, text: str) -> list[str]:
    (folder / "script.py").write_text(HEAD + text)
    end = python(folder, "script.py", NPU_SHIM_FALLBACK="silent")
    assert end.returncode == 0, end.stdout
    assert "Traceback" not in end.stdout, end.stdout
    return [line for line in end.stdout.splitlines() if "of the" in line]


def test_a_session_of_an_object_is_closed_after_the_handlers_of_the_script(
    python: Python, tmp_path: pathlib.Path
) -> None:
    text = "kept = Model('kept'), Model('shell', v1.InteractiveSession)\n"
    assert ends(python, tmp_path, text) == [
        "of the script: []",
        "of the device: [('kept', False), ('shell', False)]",
    ]


def test_no_session_lives_longer(python: Python, tmp_path: pathlib.Path) -> None:
    npu_shim.install()
    with tf.Graph().as_default() as graph:
        session = v1.Session(graph=graph)
    reference = weakref.ref(session)
    del session
    gc.collect()
    assert reference() is None


def test_closed_and_dropped_sessions_are_not_closed_again(python: Python, tmp_path: pathlib.Path) -> None:
    text = """
Model('dropped')
closed_before = Model('closed')
closed_before.sess.close()
kept = Model('kept')
"""
    before = "('closed', False), ('dropped', False)"
    assert ends(python, tmp_path, text) == [
        f"of the script: [{before}]",
        "of the device: [('closed', False), ('closed', True), ('dropped', False), ('kept', False)]",
    ]


RUNNER = """
v1.disable_eager_execution()
with tf.Graph().as_default() as graph:
    queue = v1.FIFOQueue(4, [tf.float32], [[]])
    v1.train.add_queue_runner(v1.train.QueueRunner(queue, [queue.enqueue(1.0)] * 2))
    taken = queue.dequeue()
class Trainer:
    def __init__(self):
        self.sess = v1.Session(graph=graph)
        self.sess.name = 'queue'
        self.threads = v1.train.start_queue_runners(self.sess)
        assert self.sess.run(taken) == 1.0
trainer = Trainer()
"""


def test_threads_that_still_run_keep_their_session_on_the_cpu(python: Python, tmp_path: pathlib.Path) -> None:
    assert ends(python, tmp_path, RUNNER)[-1] == "of the device: []"
    ended = """
coordinator = v1.train.Coordinator()
trainer.sess.run(queue.close(cancel_pending_enqueues=True))
for thread in trainer.threads:
    thread.join()
"""
    closing = RUNNER.replace("start_queue_runners(self.sess)", "start_queue_runners(self.sess, v1.train.Coordinator())")
    assert ends(python, tmp_path, closing + ended)[-1] == "of the device: [('queue', False)]"


def test_a_child_process_leaves_the_sessions_of_its_parent_open(python: Python, tmp_path: pathlib.Path) -> None:
    text = """
kept = Model('kept')
child = os.fork()
if not child:
    raise SystemExit
os.waitpid(child, 0)
"""
    shown = ends(python, tmp_path, text)
    assert sorted(shown) == sorted(
        ["of the script: []", "of the script: []", "of the device: []", "of the device: [('kept', False)]"]
    )


@pytest.mark.parametrize("end", ["raise ValueError('wrong')", "raise SystemExit(3)", "npu_shim.uninstall()"])
def test_the_end_of_a_script_that_fails_or_uninstalls(end: str, python: Python, tmp_path: pathlib.Path) -> None:
    (tmp_path / "script.py").write_text(HEAD + "kept = Model('kept')\n" + end + "\n")
    shown = python(tmp_path, "script.py", NPU_SHIM_FALLBACK="silent").stdout
    expected = "[]" if "uninstall" in end else "[('kept', False)]"
    assert f"of the device: {expected}" in shown, shown


def test_a_session_of_another_process_is_left_to_its_script(python: Python, tmp_path: pathlib.Path) -> None:
    text = """
server = v1.train.Server.create_local_server()
kept = Model('kept', lambda graph: v1.Session(server.target, graph=graph))
"""
    assert ends(python, tmp_path, text)[-1] == "of the device: []"
