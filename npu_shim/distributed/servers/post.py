"""This rank's server, and the messages to the queues of other ranks: the part that uses TensorFlow.

A short message is one call of the other server, which puts it into its queue. The
other server fetches a long message from this process, tensor by tensor, which
copies less but needs more calls.
"""

from __future__ import annotations

import os
import socket
from typing import Any, Callable, Sequence

import numpy as np

from npu_shim import _env, _tf, _tf_session
from npu_shim.distributed.collectives.errors import RankTaken

tf = _tf.tf
Put = Callable[[np.ndarray, np.ndarray], None]
_JOB, _QUEUE = "rank", "npu_shim messages"
_NETWORK = (socket.AF_INET, socket.AF_INET6)
_LONG_BYTES = 256 << 10
_kept: list[Any] = []  # servers cannot be stopped: they last as long as the process


class Post:
    """The messages of one rank. Its methods block, and may be called on several threads.

    Args:
        rank: this one.
        addresses: 'host:port' of the server of each rank.
    Raises:
        RankTaken: the port is in use.
    """

    def __init__(self, rank: int, addresses: Sequence[str]) -> None:
        self._rank, self._addresses = rank, list(addresses)
        self._puts: dict[tuple[int, bool], Put] = {}
        port = int(addresses[rank].rpartition(":")[2])
        _without_proxy(self._addresses)
        _check_free(rank, port)
        try:
            server = tf.distribute.Server(
                _tf.v1.train.ClusterSpec({_JOB: self._addresses}), job_name=_JOB, task_index=rank, config=_config()
            )
        except tf.errors.OpError as error:
            raise RankTaken(_taken(rank, port, error.message)) from error
        _kept.append(server)
        self._target = server.target
        self.listen()

    def put(self, dest: int, head: np.ndarray, outside: np.ndarray) -> None:
        """Puts a message into the queue of a rank; returns when it is there.

        Raises:
            tf.errors.OpError: that rank does not answer.
        """
        key = (dest, outside.nbytes >= _LONG_BYTES and dest != self._rank)
        put = self._puts.get(key)
        if put is None:
            put = self._puts[key] = self._prepare(*key)
        put(head, outside)

    def forget(self, dest: int) -> None:
        """Ends the sessions with a rank: its process may be another one now."""
        for fetched in (False, True):
            self._puts.pop((dest, fetched), None)

    def listen(self) -> None:
        """Begins to take messages out of this rank's queue, or begins anew after an error."""
        with tf.Graph().as_default() as graph, _on(self._rank):
            self._get = self._session(self._target, graph, self._rank).make_callable(_queue().dequeue())

    def get(self) -> tuple[np.ndarray, np.ndarray]:
        """The next message in this rank's queue; waits for one.

        Raises:
            tf.errors.OpError: this rank's server fails.
        """
        head, outside = self._get()
        return head, outside

    def _prepare(self, dest: int, fetched: bool) -> Put:
        with tf.Graph().as_default() as graph:
            message = [_tf.v1.placeholder(tf.uint8, [None]) for _ in range(2)]
            sent = message
            if fetched:
                with _on(self._rank):
                    sent = [tf.identity(each) for each in message]
            with _on(dest):
                put = _queue().enqueue(sent)
        target = self._target if fetched or dest == self._rank else f"grpc://{self._addresses[dest]}"
        return self._session(target, graph, *({dest, self._rank} if fetched else {dest})).make_callable(put, message)

    def _session(self, target: str, graph: Any, *ranks: int) -> Any:
        return _tf_session.BaseSession(target, graph, _config(*ranks))


def _config(*ranks: int) -> Any:
    """For sessions that know these ranks only, so that no other is waited for."""
    config = _tf.ConfigProto(device_count={"GPU": 0}, allow_soft_placement=False)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.device_filters.extend(f"/job:{_JOB}/task:{rank}" for rank in ranks)
    return config


def _on(rank: int) -> Any:
    return _tf.v1.device(f"/job:{_JOB}/replica:0/task:{rank}/device:CPU:0")


def _queue() -> Any:
    return _tf.v1.FIFOQueue(-1, [tf.uint8, tf.uint8], shared_name=_QUEUE, name="messages")


def _without_proxy(addresses: Sequence[str]) -> None:
    """Exclude the hosts of the ranks from the web proxy (http_proxy), which the network library uses as well."""
    hosts = list(dict.fromkeys(address.rpartition(":")[0].strip("[]") for address in addresses))
    environ = _env.process_environ()
    others = environ.get("no_proxy") or environ.get("NO_PROXY")
    environ["no_proxy"] = ",".join(([others] if others else []) + hosts)
    if environ.get("no_grpc_proxy"):  # newer libraries read it first
        environ["no_grpc_proxy"] += "," + ",".join(hosts)


def _check_free(rank: int, port: int) -> None:
    """TensorFlow's own error for a port in use comes with lines on the terminal and without the port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            raise RankTaken(_taken(rank, port, error.strerror or str(error))) from error


def close_in_children(port: int) -> None:
    """Lets forked processes give up what is open at a port: else nobody would see that this one has died."""

    def close() -> None:
        for name in os.listdir("/proc/self/fd"):
            try:
                with socket.socket(fileno=int(name)) as found:  # which closes it
                    address = found.getsockname()
                    if found.family not in _NETWORK or address[1] != port:
                        found.detach()
            except OSError:  # no socket, or gone
                continue

    os.register_at_fork(after_in_child=close)


def _taken(rank: int, port: int, why: str) -> str:
    return (
        f"rank {rank} cannot listen on port {port} ({why}): another job may use it. End that job, or export "
        "HCCL_IF_BASE_PORT on every host as the first of as many free ports as ranks."
    )
