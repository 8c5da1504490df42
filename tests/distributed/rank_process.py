"""A rank that runs Python source from its parent process and returns the results through a pipe."""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

TENSORFLOW = """
import tensorflow as tf
v1 = tf.compat.v1
v1.enable_eager_execution()
import npu_shim
npu_shim.install()
from npu_shim.hccl import hccl_ops
from npu_shim.distributed.ranks import create_group, destroy_group

def evaluate(mode, build):
    # build() returns tensors; return their values, computed in one of three modes
    if mode == "eager":
        return [np.asarray(t) for t in build()]
    if mode == "function":
        return [np.asarray(t) for t in tf.function(build)()]
    with tf.Graph().as_default():
        fetches = build()
        with v1.Session() as sess:
            sess.run(v1.global_variables_initializer())
            return sess.run(fetches)
"""


def main(
    pipe: Connection, rank: int, size: int, job: str, options: dict[str, Any], environment: dict[str, str]
) -> None:
    """Join the job, report the result, and run the parent's requests.

    Args:
        pipe: to the parent.
        rank: of this process.
        size: number of ranks.
        job: name of the job.
        options: for join().
        environment: variables to set first.
    """
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        _serve(pipe, rank, size, job, dict(options))
    finally:
        atexit._run_exitfuncs()  # which multiprocessing skips


def _serve(pipe: Connection, rank: int, size: int, job: str, options: dict[str, Any]) -> None:
    import numpy as np

    from npu_shim.distributed.collectives import errors

    names = {"np": np, "errors": errors, "rank": rank, "size": size}
    try:
        if options.pop("tensorflow", False):  # the environment has rank and job; the first collective joins
            exec(TENSORFLOW, names)
        else:
            module = importlib.import_module(f"npu_shim.distributed.{options.pop('backend')}")
            names["join"] = functools.partial(module.join_job, rank, size, job, **options)
            names["backend"] = backend = names["join"]()
            names["world"] = backend.world
            names["wait_for_pending"] = functools.partial(_wait_for_pending, backend.world._backend)
    except Exception as error:
        pipe.send(("error", type(error).__name__, str(error)))
        return
    pipe.send(("joined", None))
    while True:
        try:
            source, given = pipe.recv()
        except EOFError:
            return
        names.update(given, result=None)
        try:
            exec(source, names)
            pipe.send(("result", names["result"]))
        except Exception as error:
            traceback.print_exc()
            pipe.send(("error", type(error).__name__, str(error)))


def _wait_for_pending(group: Any, other: int) -> None:
    """Return when another rank is in a collective that this rank has not reached."""
    while not group.announcements.keys_of(other):
        time.sleep(0.01)
