"""NPUStrategy: a tf.distribute strategy with one replica per rank."""
from __future__ import annotations

from npu_shim import _tf
from npu_shim.distributed.ranks import require_single_process


class NPUStrategy(_tf.v1.distribute.OneDeviceStrategy):
    """One replica on this process. With several ranks it raises RuntimeError: that is not part of this release.

    Args:
        device: '/cpu:0', where the graph is built; the compiler moves it to the card.
    Raises:
        ValueError: another device.
        RuntimeError: several ranks.
    """

    def __init__(self, device: str = "/cpu:0") -> None:
        if device != "/cpu:0":
            raise ValueError(f"device={device!r} is not allowed: it must be '/cpu:0', from where the card is driven.")
        require_single_process("NPUStrategy")
        super().__init__(device)
