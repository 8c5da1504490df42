"""The prediction of a captured training step: time, memory, ranks, gains, and the options that it proposes."""

from __future__ import annotations

from dataclasses import replace

from npu_shim.distributed.ranktable.model import RankTable
from npu_shim.rehearsal.predict.configuration_edit import edit_of_configuration
from npu_shim.rehearsal.predict.gains import gains_of_step, host_seconds
from npu_shim.rehearsal.predict.gradients import collectives_of_step, messages_of_step
from npu_shim.rehearsal.predict.memory_of_step import memory_of_step
from npu_shim.rehearsal.predict.of_graph import Step, count_open_sizes
from npu_shim.rehearsal.predict.ops_of_nodes import properties_of_nodes
from npu_shim.rehearsal.predict.prediction import Prediction, Range
from npu_shim.rehearsal.predict.proposals import proposals_for
from npu_shim.rehearsal.predict.ranges import shipped_step_range
from npu_shim.rehearsal.predict.ranks import bucketed, ranks_of_servers, steps_on_ranks
from npu_shim.rehearsal.predict.timeline import timeline_of_step


def predict_training(
    step: Step, input_rate: float | None = None, ranks: int = 1, table: RankTable | None = None
) -> Prediction:
    """Return the prediction of a training step.

    Args:
        step: the captured step, for a processor.
        input_rate: batches a second of its input pipeline on this machine; None if they are not known.
        ranks: of the job.
        table: its rank table.
    """
    step = step._replace(properties=properties_of_nodes(step.flat.nodes))
    nodes, runs = step.flat.nodes, step.runs()
    on_device = step.on_device(runs)
    host = host_seconds(step)
    ranged = shipped_step_range().around(on_device.step + host)
    readers = max(ranks_of_servers(ranks, table))
    memory = memory_of_step(step.flat, step.nodes_in_half(), step.trips, step.device.memory, ranks)
    open_sizes = count_open_sizes(step, runs, on_device.seconds)
    is_known = not open_sizes.unknown and not step.unknown.loops
    if not is_known:
        why = "only values decide some sizes" if open_sizes.unknown else "the graph does not say how often a loop runs"
        memory = replace(memory, largest_batch=None, why=why)
    ends, backward = timeline_of_step(nodes, runs, on_device.seconds)
    messages = collectives_of_step(nodes, ends)
    gradients = [] if messages else messages_of_step(nodes, ends)
    on_ranks = steps_on_ranks(ranged.value, backward, messages or bucketed(gradients), step.device.family, ranks, table)
    reads = readers / input_rate if input_rate else 0.0
    gains = gains_of_step(step, on_device.step, runs, on_device.seconds, reads)
    proposals = proposals_for(step, on_device.step, memory, gains, gradients, backward, ranks, table)
    return Prediction(
        processor=step.device.name,
        device=on_device.device,
        step=ranged,
        examples=_examples_a_second(memory.batch, ranged) if memory.batch and is_known else None,
        phases=on_device.phases,
        limits=on_device.limits,
        ops=on_device.ops,
        not_measured=on_device.not_measured,
        op_runs=on_device.op_runs,
        unknown_sizes=open_sizes.unknown,
        bounded_sizes=open_sizes.bounded,
        bounded_seconds=open_sizes.bounded_seconds,
        unknown_loops=list(step.unknown.loops),
        unknown_branches=list(step.unknown.branches),
        steps_in_call=int(step.parameters.get("iterations_per_loop") or 1),
        host=host,
        input_rate=input_rate,
        input_ranks=readers,
        memory=memory,
        gains=gains,
        ranks=on_ranks,
        proposals=proposals,
        edit=edit_of_configuration(step.trainer, memory.batch, proposals),
    )


def _examples_a_second(batch: int, step: Range) -> Range:
    return Range(batch / step.value, batch / step.high, batch / step.low)
