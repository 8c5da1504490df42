"""The process that ranks are forked from: it imports TensorFlow once, and runs the script in each fork.

``launching/fork_server.py`` starts it. It has one thread and no session, and a fork of it becomes a rank that a script
cannot distinguish from a new Python.
"""

from __future__ import annotations

import array
import gc
import importlib
import json
import os
import socket
import sys
import time
from typing import Any, Collection

from npu_shim._host import host_env
from npu_shim.import_hook import script
from npu_shim.import_hook.preloaded import TENSORFLOW, Preloaded, hides


def main(before: Collection[str]) -> None:
    """Import TensorFlow, fork the ranks that the launcher asks for, and run the script in each.

    It ends this process when the launcher closes the link. It returns in a rank when the script returns.

    Args:
        before: the names of the modules of a new Python.
    """
    link, command = socket.socket(fileno=int(sys.argv[1])), sys.argv[2:]
    environ = dict(host_env.process_environ())
    is_module = command[0] == "-m"
    script.prepare_path(os.getcwd() if is_module else os.path.dirname(os.path.realpath(command[0])))
    problem = _import_tensorflow(before) or _threads()
    _send(link, {"problem": problem})
    added = {name: value for name, value in host_env.process_environ().items() if environ.get(name) != value}
    gc.collect()
    gc.freeze()  # a collection would write to the memory that ranks share
    while True:
        line, guardian = _receive(link)
        if not line:
            os._exit(0)
        if _fork(link, guardian):
            break
        os.close(guardian)
    link.close()
    rank: dict[str, Any] = json.loads(line)
    printed = _become(rank, command)
    preloaded = Preloaded(
        before,
        environ,
        added,
        lambda reason: _start_again(reason, command, rank["environ"]),
        lambda: _write(2, printed),
    )
    preloaded.hide()
    if is_module:
        script.run_module(command[1], command[2:])
    else:
        script.run_file(command[0], command[1:], None)


def _import_tensorflow(before: Collection[str]) -> str | None:
    """Import TensorFlow as the script would. Return why its ranks cannot share it; None if they can."""
    try:
        importlib.import_module(TENSORFLOW)
    except Exception as error:  # what its import raises, the script raises as well
        return f"the import of TensorFlow fails with {type(error).__name__}: {error}"
    folder = sys.path[0]
    for name, module in list(sys.modules.items()):
        if name in before or "." in name:
            continue
        hidden = hides(name, module)
        if hidden:
            return f"{hidden} hides the module {name}"
        spec = getattr(module, "__spec__", None)
        if spec is None or not spec.has_location:
            continue
        place = os.path.dirname(spec.origin)
        if folder == (place if spec.submodule_search_locations is None else os.path.dirname(place)):
            return f"TensorFlow imports {spec.origin}"  # each rank would run it, with its own variables
    return None


def _threads() -> str | None:
    """Return the threads that a fork would lose, None if there are none."""
    child = os.fork()  # OpenBLAS ends its threads at a fork, and starts them when it needs them
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    count = len(os.listdir("/proc/self/task"))
    return None if count == 1 else f"the import of TensorFlow starts {count - 1} threads"


def _receive(link: socket.socket) -> tuple[bytes, int]:
    """Return the next request and the file descriptor of the pipe to the guardian; no bytes at the end."""
    line, descriptors = b"", array.array("i")
    while not line.endswith(b"\n"):
        new, ancillary, _, _ = link.recvmsg(1 << 16, socket.CMSG_LEN(descriptors.itemsize))
        if not new:
            return b"", -1
        line += new
        for _, _, data in ancillary:
            descriptors.frombytes(data)
    return line, descriptors[0]


def _fork(link: socket.socket, guardian: int) -> bool:
    """Fork a rank from a process that ends, so that the launcher adopts it. Return True in the rank."""
    read, write = os.pipe()
    forking = os.fork()
    if forking:
        os.close(write)
        os.waitpid(forking, 0)
        with os.fdopen(read) as stream:
            _send(link, json.loads(stream.read()))
        return False
    forking = os.getpid()
    try:
        pid, problem = os.fork(), None
    except OSError as error:
        pid, problem = -1, f"the process cannot be forked: {error.strerror}"
    if pid:
        _write(write, json.dumps({"pid": pid, "problem": problem}).encode())
        os._exit(0)
    os.close(read)
    os.close(write)
    os.setsid()
    os.write(guardian, b"+%d\n" % os.getpid())  # it must know the group even if the launcher is killed at this moment
    os.close(guardian)
    while os.getppid() == forking:  # a script may look at its parent
        time.sleep(0.0005)
    return True


def _become(rank: dict[str, Any], command: list[str]) -> bytes:
    """Give this process the streams, the variables and the random numbers of a rank.

    Returns:
        what the import of TensorFlow printed.
    """
    printed = os.pread(2, os.fstat(2).st_size, 0)
    log = os.open(rank["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    if rank["cores"]:
        os.sched_setaffinity(0, rank["cores"])
    environ = host_env.process_environ()
    environ.clear()
    environ.update(rank["environ"])
    if hasattr(sys, "orig_argv"):
        setattr(sys, "orig_argv", [sys.executable, *command])
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()  # random, uuid and tempfile notice a fork themselves
    processes = sys.modules.get("multiprocessing")
    if processes is not None:
        processes.current_process().authkey = os.urandom(32)
    return printed


def _start_again(reason: str, command: list[str], environ: dict[str, str]) -> None:
    """Replace this process by a new Python."""
    _write(2, f"npu-shim launch: this rank starts again as a plain process: {reason}\n".encode())
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.execve(sys.executable, [sys.executable, *command], environ)


def _send(link: socket.socket, message: dict[str, Any]) -> None:
    link.sendall(json.dumps(message).encode("utf-8") + b"\n")


def _write(descriptor: int, text: bytes) -> None:
    while text:
        text = text[os.write(descriptor, text) :]
