"""NPUStrategy: a tf.distribute strategy with one replica per rank."""
from __future__ import annotations

from npu_shim import _device, _tf
from npu_shim.distributed.world import world_size


@_device.on_card("npu_bridge.estimator.npu.npu_strategy")
class NPUStrategy(_tf.v1.distribute.OneDeviceStrategy):
    """One replica on this process, on a card the vendor's strategy.

    It takes the place of a strategy of tf.distribute for its scope, its number
    of replicas and its datasets. Gradients are averaged over ranks by the
    optimizer (npu_distributed_optimizer_wrapper), not by the strategy.

    Args:
        device: '/cpu:0', where the graph is built; the compiler moves it to the card.
    Raises:
        ValueError: another device.
        RuntimeError: several ranks without cards.
    """

    def __init__(self, device: str = "/cpu:0") -> None:
        if device != "/cpu:0":
            raise ValueError(f"device={device!r} is not allowed: it must be '/cpu:0', from where the card is driven.")
        if world_size() > 1:
            raise RuntimeError(
                f"NPUStrategy on {world_size()} ranks is not part of this release of npu_shim without cards. Leave the strategy "
                "out, average gradients with npu_distributed_optimizer_wrapper, give each rank its share of the data with "
                "dataset.shard(get_rank_size(), get_rank_id()), and begin with NPUBroadcastGlobalVariablesHook.")
        super().__init__(device)
