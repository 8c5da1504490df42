"""A rank that does what its parent tells it: Python source through a pipe, results back."""

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

def evaluate(way, build):
    # build() gives tensors; their values, made in one of three ways
    if way == "eager":
        return [np.asarray(t) for t in build()]
    if way == "function":
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
    """Joins, says whether it worked, and serves.

    Args:
        pipe: to the parent.
        rank, size, job: who this is.
        options: for join().
        environment: variables that are set first.
    """
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        _serve(pipe, rank, size, job, dict(options))
    finally:
        atexit._run_exitfuncs()  # which a process of multiprocessing leaves out


def _serve(pipe: Connection, rank: int, size: int, job: str, options: dict[str, Any]) -> None:
    import numpy as np

    from npu_shim.distributed import collectives

    names = {"np": np, "collectives": collectives, "rank": rank, "size": size}
    try:
        if options.pop("tensorflow", False):  # the environment says who this is; the first collective joins
            exec(TENSORFLOW, names)
        else:
            carrier = importlib.import_module(f"npu_shim.distributed.{options.pop('carrier')}")
            names["join"] = functools.partial(carrier.join, rank, size, job, **options)
            names["engine"] = engine = names["join"]()
            names["world"] = engine.world
            names["until_waiting"] = functools.partial(_until_waiting, engine.world._members)
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


def _until_waiting(members: Any, other: int) -> None:
    """Returns when another rank is in a collective that this one has not reached, however late it comes."""
    while not _keys_awaited(members, other):
        time.sleep(0.01)


def _keys_awaited(members: Any, other: int) -> list[str]:
    if hasattr(members, "_turns"):
        return list(members._turns._lanes._keys_of(other))
    with members._office.lock:
        return list(members._office.awaited(members._group, other))
