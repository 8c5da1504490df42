"""The process that ranks and recorded runs are forked from: it imports TensorFlow once, and runs a script in each fork.

``launching/fork_server.py`` starts it. It has one thread and no session, and a script cannot distinguish a fork of it
from a new Python.
"""

from __future__ import annotations

import array
import gc
import importlib
import os
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Collection, Mapping, Sequence

from npu_shim._host import host_env
from npu_shim._host.process_settings import decode_settings, encode_settings
from npu_shim.import_hook import script
from npu_shim.import_hook.preloaded import TENSORFLOW, Preloaded, shadowing_file


@dataclass(frozen=True)
class ForkRequest:
    """A process to fork.

    Attributes:
        name: of the process, for a message in its log.
        command: a script or ``-m`` and a module, and the arguments.
        log: path of the file for its output, which is appended.
        environment: all its environment variables.
        folder: its current folder.
        cores: the processors that it may use; those of the other side when empty.
    """

    name: str
    command: Sequence[str]
    log: str
    environment: Mapping[str, str]
    folder: str
    cores: Sequence[int]


@dataclass(frozen=True)
class Answer:
    """The answer: why it is not possible, or None, and the number of the forked process."""

    problem: str | None
    pid: int = -1


def main(before: Collection[str]) -> None:
    """Import TensorFlow, fork the processes that the other side asks for, and run a script in each.

    It ends this process when the other side closes the link. It returns in a fork when the script returns.

    Args:
        before: the names of the modules of a new Python.
    """
    link = socket.socket(fileno=int(sys.argv[1]))
    environ = dict(host_env.process_environ())
    script.enter_script_folder(sys.argv[2:])
    problem = _import_tensorflow(before) or _other_threads()
    link.sendall(_answer_line(Answer(problem)))
    added = {name: value for name, value in host_env.process_environ().items() if environ.get(name) != value}
    gc.collect()
    gc.freeze()  # a collection would write to the memory that forks share
    while True:
        line, guardian = _receive_request_and_guardian(link)
        if not line:
            os._exit(0)
        if _fork_from_child(link, guardian):
            break
        if guardian is not None:
            os.close(guardian)
    link.close()
    request = decode_settings(line.decode("ascii"), ForkRequest)
    printed, command = _apply_request_and_read_printed(request), request.command
    preloaded = Preloaded(
        before, environ, added, lambda reason: _replace_process(reason, request), lambda: _write_all(2, printed)
    )
    preloaded.hide_modules()
    script.enter_script_folder(command)
    script.run_unconverted(command)


def _import_tensorflow(before: Collection[str]) -> str | None:
    """Import TensorFlow as the script would. Return why forks cannot share it; None if they can."""
    try:
        importlib.import_module(TENSORFLOW)
    except Exception as error:  # what its import raises, the script raises as well
        return f"the import of TensorFlow fails with {type(error).__name__}: {error}"
    folder = sys.path[0]
    for name, module in list(sys.modules.items()):
        if name in before or "." in name or name == "npu_shim":
            continue
        hidden = shadowing_file(name, module)
        if hidden:
            return f"{hidden} hides the module {name}"
        spec = getattr(module, "__spec__", None)
        if spec is None or not spec.has_location:
            continue
        place = os.path.dirname(spec.origin)
        if folder == (place if spec.submodule_search_locations is None else os.path.dirname(place)):
            return f"TensorFlow imports {spec.origin}"  # each fork would run it, with its own variables
    return None


def _other_threads() -> str | None:
    """Return the threads that a fork would lose, None if there are none."""
    child = os.fork()  # OpenBLAS ends its threads at a fork, and starts them when it needs them
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    count = len(os.listdir("/proc/self/task"))
    return None if count == 1 else f"the import of TensorFlow starts {count - 1} threads"


def _receive_request_and_guardian(link: socket.socket) -> tuple[bytes, int | None]:
    """Return the next request and the file descriptor of the pipe to the guardian, if any; no bytes at the end."""
    line, descriptors = b"", array.array("i")
    while not line.endswith(b"\n"):
        new, ancillary, _, _ = link.recvmsg(1 << 16, socket.CMSG_LEN(descriptors.itemsize))
        if not new:
            return b"", None
        line += new
        for _, _, data in ancillary:
            descriptors.frombytes(data)
    return line, descriptors[0] if descriptors else None


def _fork_from_child(link: socket.socket, guardian: int | None) -> bool:
    """Fork from a process that ends, so that the other side adopts the fork. Return True in the fork."""
    read, write = os.pipe()
    forking = os.fork()
    if forking:
        os.close(write)
        os.waitpid(forking, 0)
        with os.fdopen(read, "rb") as stream:
            link.sendall(stream.read())
        return False
    forking = os.getpid()
    try:
        pid, problem = os.fork(), None
    except OSError as error:
        pid, problem = -1, f"the process cannot be forked: {error.strerror}"
    if pid:
        _write_all(write, _answer_line(Answer(problem, pid)))
        os._exit(0)
    os.close(read)
    os.close(write)
    if guardian is not None:
        os.setsid()
        # It must know the group even if the launcher is killed at this moment.
        os.write(guardian, b"+%d\n" % os.getpid())
        os.close(guardian)
    while os.getppid() == forking:  # a script may look at its parent
        time.sleep(0.0005)
    return True


def _apply_request_and_read_printed(request: ForkRequest) -> bytes:
    """Give this process its own streams, variables, folder and random numbers.

    Returns:
        what the import of TensorFlow printed.
    """
    printed = os.pread(2, os.fstat(2).st_size, 0)
    log = os.open(request.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.chdir(request.folder)
    if request.cores:
        os.sched_setaffinity(0, request.cores)
    environ = host_env.process_environ()
    environ.clear()
    environ.update(request.environment)
    tempfile.tempdir = None  # TensorFlow has asked for it, with other variables
    if hasattr(sys, "orig_argv"):
        setattr(sys, "orig_argv", [sys.executable, *request.command])
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()  # random, uuid and tempfile notice a fork themselves
    processes = sys.modules.get("multiprocessing")
    if processes is not None:
        processes.current_process().authkey = os.urandom(32)
    return printed


def _replace_process(reason: str, request: ForkRequest) -> None:
    """Replace this process by a new Python."""
    _write_all(2, f"npu-shim: {request.name} starts again as a plain process: {reason}\n".encode())
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.chdir(request.folder)
    os.execve(sys.executable, [sys.executable, *request.command], request.environment)


def _answer_line(answer: Answer) -> bytes:
    return encode_settings(answer).encode("ascii") + b"\n"


def _write_all(descriptor: int, text: bytes) -> None:
    while text:
        text = text[os.write(descriptor, text) :]
