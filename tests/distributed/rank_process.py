"""A rank that does what its parent tells it: Python source on standard input, results on standard output, pickled.

    python rank_process.py RANK SIZE JOB OPTIONS      OPTIONS is a JSON object for join()
"""
from __future__ import annotations

import json
import pickle
import struct
import sys
import traceback
from typing import Any, BinaryIO


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


def write(stream: BinaryIO, value: Any) -> None:
    """Writes a value after its length."""
    raw = pickle.dumps(value, protocol=4)
    stream.write(struct.pack("<Q", len(raw)) + raw)
    stream.flush()


def read(stream: BinaryIO) -> Any:
    """Reads what write() wrote; EOFError at the end."""
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    return pickle.loads(stream.read(struct.unpack("<Q", head)[0]))


def main() -> None:
    """Joins, says whether it worked, and serves."""
    rank, size, job, options = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
    output, sys.stdout = sys.stdout.buffer, sys.stderr
    from npu_shim.distributed import collectives, shm
    import numpy as np

    names = {"np": np, "shm": shm, "collectives": collectives, "rank": rank, "size": size}
    try:
        if options.pop("tensorflow", False):  # the environment says who this is; the first collective joins
            exec(TENSORFLOW, names)
        else:
            names["engine"] = engine = shm.join(rank, size, job, **options)
            names["world"] = engine.world
    except Exception as error:
        write(output, ("error", type(error).__name__, str(error)))
        return
    write(output, ("joined", None))
    while True:
        try:
            source, given = read(sys.stdin.buffer)
        except EOFError:
            return
        names.update(given, result=None)
        try:
            exec(source, names)
            write(output, ("result", names["result"]))
        except Exception as error:
            traceback.print_exc()
            write(output, ("error", type(error).__name__, str(error)))


if __name__ == "__main__":
    main()
