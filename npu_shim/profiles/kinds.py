"""Kinds of ops: the unit that runs them, and the bottleneck that their time belongs to."""

from __future__ import annotations

import re
from typing import NamedTuple

from npu_shim.profiles.tables import Signature

COMPUTE, AI_CPU, COMMUNICATION, INPUT, HOST, TRANSFER, OTHER = (
    "compute", "AI CPU", "communication", "input pipeline", "host", "transfers", "other"
)  # fmt: skip
# Time belongs to the first of them that is busy.
CATEGORIES = (COMPUTE, AI_CPU, COMMUNICATION, TRANSFER, HOST, INPUT)

_INPUT = re.compile(
    r"(Dynamic|Device)?GetNext|Iterator(V2)?(GetNext)?|\w*IteratorGetNext|Queue(Dequeue|TryDequeue)|DequeueFromQueue",
    re.I,
)
_HOST = re.compile(r"(Eager|Stateless)?PyFunc(Stateless)?|HostFunc\w*|NumpyFunction|Print(V2)?", re.I)
_COLLECTIVE = re.compile(
    r"hcom_|(Hcom|Horovod|Collective|Nccl|HcclAll)|all_?reduce|(reduce|all)_?(scatter|gather)", re.I
)
_COLLECTIVE_CORE = re.compile("COMMUNICATION|HCCL|HCOM", re.I)
_COMPUTE = re.compile("CORE|VECTOR|AI[CV]|MIX|DSA|KERNEL|FFTS|CPU", re.I)
_AI_CPU = re.compile("AI_?CPU|KERNEL_AICPU|TS_AICPU", re.I)
_TRANSFER = re.compile("MEMCPY|PCIE|SDMA|D2H|H2D|RDMA", re.I)
_NO_WORK = re.compile(
    "EVENT|NOTIFY|WAIT|PLACE_?HOLDER|PROFILING|WRITE_VALUE|STREAM|LABEL|MODEL|FLIP|CALLBACK|START|MAINTENANCE|RECORD",
    re.I,
)
_SUMMARY = re.compile(
    r"\w*Summary(V2|Writer)?|Save(V2|Slices)?|Restore(V2)?|MergeV2Checkpoints|ShardedFilename|Outfeed\w*|WriteFile",
    re.I,
)
_MATRIX = re.compile(
    r"\w*(MatMul|Matmul|Conv[23]D|Conv2d|GEMM|FlashAttention|FusedInferAttention|BasicLSTM|DynamicRNN|DynamicGRU|Einsum)\w*"
)
_NOT_MATRIX = re.compile(r"\w*(Bias|Pool)\w*")
_DROPOUT = re.compile(
    r"(Stateless)?(Random\w*|TruncatedNormal)|Greater(Equal)?|Cast|Mul|RealDiv|Floor|Add(V2)?|Select(V2)?|Sub|Fill|ZerosLike"
)
_GELU = re.compile("Erf|Tanh|Pow|Mul|Add(V2)?|RealDiv|Sqrt|Square|Cast")
_SMALL = {True: 30_000, False: 10_000}  # nanoseconds, on the CPU and on the NPU


class Kind(NamedTuple):
    """A kind of bottleneck.

    Attributes:
        title: of a finding.
        fix: what to do, in the terms of npu_shim.
        see: a page of the documentation.
        replaced: True if another op takes the place of what it names; False if nothing does.
    """

    title: str
    fix: str
    see: str
    replaced: bool = False


KINDS: dict[str, Kind] = {
    "data-bound": Kind(
        "the step waits for the input pipeline",
        "Add prefetch(tf.data.AUTOTUNE) at the end, num_parallel_calls to map and interleave, and cache what stays the "
        "same; give batches a static shape with drop_remainder=True.",
        "static-shapes.md",
    ),
    "host-bound": Kind(
        "the device waits for the host",
        "Replace feed_dict and py_function by tf.data; set enable_data_pre_proc; run several steps in one call with "
        "iterations_per_loop; bind ranks to cores with npu-shim launch --bind-cores.",
        "options.md#iterations_per_loop",
    ),
    "launch-gaps": Kind(
        "the device is idle between ops",
        "Run several steps in one call with iterations_per_loop; put eager code into a tf.function.",
        "options.md#iterations_per_loop",
    ),
    "small-ops": Kind(
        "many small ops",
        "Put eager code into a tf.function; replace Python loops by one batched op; leave fusion on "
        "(fusion_switch_file); run several steps in one call with iterations_per_loop.",
        "options.md#fusion_switch_file",
    ),
    "recompile": Kind(
        "graphs or ops are compiled during training",
        "Give every placeholder and dataset a static shape: drop_remainder=True, npu_shim.data.pad_last_batch or "
        "npu_shim.data.bucket_by_length.",
        "static-shapes.md",
    ),
    "ai-cpu": Kind(
        "ops run on the AI CPU",
        "Use ops of the AI Core: npu_shim.data.masked_select for Where, npu_shim.data.unique_padded for Unique, int32 "
        "for int64; move ops on strings into the input pipeline.",
        "static-shapes.md",
        replaced=True,
    ),
    "float64": Kind(
        "ops compute in float64, which the NPU emulates",
        "Create constants and variables with dtype=tf.float32, and arrays with astype(np.float32).",
        "precision.md",
        replaced=True,
    ),
    "dropout-gelu": Kind(
        "dropout or gelu is computed op by op",
        "Use npu_ops.dropout and npu_unary_ops.gelu; convert_tf2npu replaces calls of tf.nn.dropout and gelu formulas.",
        "porting.md",
        replaced=True,
    ),
    "format-conversion": Kind(
        "tensors are converted between formats",
        "Keep one layout in the whole model, without transposes of its own; make channels multiples of 16.",
        "options.md",
    ),
    "casts": Kind(
        "tensors are cast between types",
        "Set precision_mode to allow_mix_precision; remove tf.cast from loops; keep neighbouring ops in one list of "
        "modify_mixlist.",
        "precision.md",
    ),
    "matrix-float32": Kind(
        "matrix ops compute in float32",
        "Set precision_mode to allow_mix_precision, with a loss scale.",
        "precision.md",
        replaced=True,
    ),
    "matrix-sizes": Kind(
        "matrix ops have sizes that are no multiples of 16",
        "Pad the sizes of layers, vocabularies and batches to multiples of 16.",
        "static-shapes.md",
        replaced=True,
    ),
    "matrix-batch": Kind(
        "matrix ops are too small for the matrix unit",
        "Increase the batch size; concatenate products that share an operand.",
        "assess.md",
        replaced=True,
    ),
    "matrix-unit": Kind(
        "matrix ops use little of the matrix unit",
        "Tune the ops: set aoe_mode and work_path; leave deterministic at 0, whose kernels are faster.",
        "options.md#aoe_mode",
        replaced=True,
    ),
    "summaries": Kind(
        "summaries or checkpoints are written in the step",
        "Raise save_summary_steps and save_checkpoints_steps.",
        "options.md",
    ),
    "transfers": Kind(
        "the step waits for copies between host and device",
        "Fetch the loss only every 100 steps, and no gradients; keep batches on the device with iterations_per_loop.",
        "options.md",
    ),
    "few-messages": Kind(
        "gradients travel after the backward pass, in too few messages",
        "Split them with set_split_strategy_by_size, so that they overlap the backward pass.",
        "distributed.md",
    ),
    "many-messages": Kind(
        "gradients travel in too many messages",
        "Join them with set_split_strategy_by_size.",
        "distributed.md",
    ),
    "communication": Kind(
        "nothing overlaps the communication",
        "Send gradients during the backward pass with NPUDistributedOptimizer and set_split_strategy_by_size; "
        "accumulate gradients over steps.",
        "distributed.md",
    ),
    "slow-rank": Kind(
        "other ranks wait for a slow rank",
        "Give ranks equal shards and lengths with npu_shim.data.bucket_by_length; bind ranks to cores with npu-shim "
        "launch --bind-cores; check its device with npu-smi.",
        "distributed.md",
    ),
    "slow-link": Kind(
        "a link between two ranks is slow",
        "Check the link with hccn_tool and the rank table with npu-shim ranktable.",
        "distributed.md",
    ),
}


def category(each: Signature) -> str:
    """Return who is busy with an op: one of CATEGORIES, or OTHER for tasks that wait or mark something."""
    if _INPUT.fullmatch(each.type):
        return INPUT
    if _HOST.fullmatch(each.type) or each.core.upper() in ("HOST", "HOST_FUNC"):
        return HOST
    if _COLLECTIVE_CORE.search(each.core) or _COLLECTIVE.match(each.type):
        return COMMUNICATION
    if _AI_CPU.search(each.core):
        return AI_CPU
    if _TRANSFER.search(each.core):
        return TRANSFER
    named = each.type or _COMPUTE.search(each.core)  # task_time has no types, and rows that set or mark something
    return COMPUTE if named and not _NO_WORK.search(each.core) else OTHER


def kind(each: Signature) -> str:
    """Return the kind of bottleneck that the time of an op belongs to, "" for none."""
    busy, name = category(each), each.name.lower()
    if busy in (INPUT, HOST, TRANSFER):
        return {INPUT: "data-bound", HOST: "host-bound", TRANSFER: "transfers"}[busy]
    if busy in (COMMUNICATION, OTHER):
        return ""
    if _SUMMARY.fullmatch(each.type):
        return "summaries"
    if re.search(r"\b(DT_)?(DOUBLE|FLOAT64)\b", f"{each.types};{each.out_types}", re.I):
        return "float64"
    if ("dropout" in name and _DROPOUT.fullmatch(each.type)) or ("gelu" in name and _GELU.fullmatch(each.type)):
        return "dropout-gelu"
    if busy == AI_CPU:
        return "ai-cpu"
    if re.fullmatch(r"TransData\w*|FormatTransfer|Transpose(D|V2)?", each.type):
        return "format-conversion"
    return "casts" if each.type == "Cast" else ""


def on_cpu(each: Signature) -> bool:
    """Return True for an op of TensorFlow on the CPU."""
    return each.core.upper() == "CPU"


def small(each: Signature) -> int:
    """Return the nanoseconds below which an op costs less than its launch."""
    return _SMALL[on_cpu(each)]


def is_matrix(each: Signature) -> bool:
    """Return True for an op of the matrix unit."""
    return bool(_MATRIX.fullmatch(each.type)) and not _NOT_MATRIX.fullmatch(each.type) and category(each) == COMPUTE
