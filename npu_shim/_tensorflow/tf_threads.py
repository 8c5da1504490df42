"""Limit the threads of an op that the calling thread runs."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from typing import Callable, Iterator

import tensorflow as tf


@functools.lru_cache(maxsize=None)
def _parallelism_getter_and_setter() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return TensorFlow's getter and setter of the calling thread's parallelism, or None if they are not exported."""
    try:
        names = [flag[len("-l:") :] for flag in tf.sysconfig.get_link_flags() if flag.startswith("-l:")]
        library = ctypes.CDLL(os.path.join(tf.sysconfig.get_lib(), names[0]))
        return (
            library._ZN10tensorflow26GetPerThreadMaxParallelismEv,
            library._ZN10tensorflow26SetPerThreadMaxParallelismEi,
        )
    except (AttributeError, IndexError, OSError):
        return None


@contextlib.contextmanager
def run_kernels_in_one_thread() -> Iterator[None]:
    """Inside, an op that the calling thread runs does all its work in this thread.

    TensorFlow does the same for the functions of a dataset with the option max_intra_op_parallelism. There is no public
    way for one run. If the private functions are missing, ops use all threads.
    """
    threads = _parallelism_getter_and_setter()
    if threads is None:
        yield
        return
    get, put = threads
    before = get()
    put(1)
    try:
        yield
    finally:
        put(before)
