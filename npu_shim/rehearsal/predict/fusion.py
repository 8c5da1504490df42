"""Neighbouring ops that the compiler makes one: by meaning, before types and layouts; by buffer, after them."""

from __future__ import annotations

from typing import Sequence

from npu_shim.rehearsal.predict.device_graph import TABLE, Op, Use, Value, readers_of, types_pattern

_UNARY, _TWO = types_pattern("unary"), types_pattern("two inputs")
_FUSIONS: list[list[str]] = TABLE["fusions"]
_BIASED = ("MatMulV2", "Conv2D", "DepthwiseConv2D", "Conv3D")


def with_composed_ops(ops: Sequence[Op], family: str) -> list[Op]:
    """Return ops with biases in products and convolutions, padding in convolutions, and gradients of softmax as one."""
    readers = readers_of(ops)
    gone: set[Op] = set()
    for op in ops:
        if op.type == "Sub":
            _compose_softmax_gradient(op, readers, gone)
        elif op.type == "TransposeD" and family == "910":
            _compose_transpose(op, readers)
        maker = op.inputs[0].value.maker if op.inputs else None
        if op.type == "BiasAdd" and maker is not None and maker.type in _BIASED and _is_only_reader(op, maker, readers):
            maker.inputs.append(op.inputs[1])
            _take_over(maker, op, gone)
        elif op.type == "Conv2D" and maker is not None and maker.type == "PadD":
            sizes = zip(maker.inputs[0].shape, maker.outputs[0].shape)
            images = [axis for axis, (old, new) in enumerate(sizes) if old != new]
            if not {0, op.axes.find("C")} & set(images):
                for reader in readers[maker.outputs[0]]:
                    reader.inputs = [maker.inputs[0] if use.value is maker.outputs[0] else use for use in reader.inputs]
                gone.add(maker)
    return [op for op in ops if op not in gone]


def _compose_softmax_gradient(difference: Op, readers: dict[Value, list[Op]], gone: set[Op]) -> None:
    """Make (dy - sum(dy y)) y one op, as SoftmaxGradFusionPass does."""
    total = difference.inputs[-1].value.maker
    product = total.inputs[0].value.maker if total is not None and total.type == "ReduceSumD" else None
    if total is None or product is None or product.type != "Mul":
        return
    results = [use for use in product.inputs if use.value.maker is not None and use.value.maker.type == "SoftmaxV2"]
    last = readers.get(difference.outputs[0], [])
    if len(results) == 1 and len(last) == 1 and last[0].type == "Mul" and results[0] in last[0].inputs:
        last[0].type, last[0].inputs = "SoftmaxGrad", [results[0], difference.inputs[0]]
        for op in (difference, total, product):
            last[0].nodes += op.nodes
            gone.add(op)


def _compose_transpose(op: Op, readers: dict[Value, list[Op]]) -> None:
    """Make a transposition with the reshape before or after it one op on the blocks of products."""
    (use, *_), (result,) = op.inputs, op.outputs
    seen = {other.shape for reader in readers.get(result, []) for other in reader.inputs if other.value is result}
    before, after = use.value.shape, seen.pop() if len(seen) == 1 else result.shape
    is_reshaped = before != use.shape or after != result.shape
    if is_reshaped and all(len(shape) > 1 and not any(size % 16 for size in shape[-2:]) for shape in (before, after)):
        op.type, op.inputs, result.shape = "ConfusionTransposeD", [Use(use.value, before)], after


def _is_only_reader(op: Op, maker: Op, readers: dict[Value, list[Op]]) -> bool:
    """Return True if an op alone reads the result of another, in the shape in which it was made."""
    value = maker.outputs[0]
    is_same = all(use.shape == value.shape for use in op.inputs if use.value is value)
    return readers.get(value) == [op] and is_same and maker.times == op.times and maker.phase == op.phase


def _take_over(first: Op, later: Op, gone: set[Op]) -> None:
    """Let an op write what a later one writes."""
    first.outputs[:1] = later.outputs
    for value in later.outputs:
        value.maker = first
    first.nodes += later.nodes
    gone.add(later)


def with_fused_ops(ops: Sequence[Op]) -> list[Op]:
    """Return ops with those of a buffer as one: the fusions of the table, and functions of a result."""
    readers = readers_of(ops)
    place = {op: number for number, op in enumerate(ops)}
    gone: set[Op] = set()
    for op in ops:
        if op in gone:
            continue
        for *types, name in _FUSIONS:
            chain = _fusion_chain(op, types, readers, gone)
            if chain:
                for later in chain[1:]:
                    _join(op, later, readers, gone, place)
                op.type = name
                break
        else:
            later_one = _unary_reader_to_fuse(op, readers, gone)
            if later_one is not None:
                name = f"FusionOp_{op.type}_{later_one.type}"
                _join(op, later_one, readers, gone, place)
                op.type = name
    return sorted((op for op in ops if op not in gone), key=lambda op: place[op])


def _fusion_chain(op: Op, types: Sequence[str], readers: dict[Value, list[Op]], gone: set[Op]) -> list[Op]:
    """Return the ops of a fusion that begins with an op, [] without."""
    if op.type != types[0]:
        return []
    chain = [op]
    for type in types[1:]:
        last = chain[-1]
        after = readers.get(last.outputs[0], [])
        reader = after[0] if len(after) == 1 else None
        if last.type == "Conv2D" and type == "BNTrainingReduce":  # its update reads the result, too
            reader = next((reader for reader in after if reader.type == type), None)
        elif reader is not None and not _is_only_reader(reader, last, readers):
            reader = None
        if reader is None or reader.type != type or reader in gone or not _can_join(last, reader):
            return []
        chain.append(reader)
    return chain


def _can_join(first: Op, later: Op) -> bool:
    """Return False for a convolution in float32 with its sums, and for a product of two tensors in a sum."""
    if later.type == "BNTrainingReduce":
        return first.outputs[0].stored != "float32"
    return first.type != "Mul" or any(use.value.is_scalar() for use in first.inputs)


def _unary_reader_to_fuse(op: Op, readers: dict[Value, list[Op]], gone: set[Op]) -> Op | None:
    if not (_UNARY.match(op.type) or _TWO.match(op.type)) or op.type.startswith("FusionOp_") or not op.outputs:
        return None
    for reader in readers.get(op.outputs[0], []):
        if reader not in gone and _UNARY.match(reader.type) and reader.phase == op.phase and reader.times == op.times:
            if len(readers[op.outputs[0]]) == 1 and reader.inputs[0].shape == op.outputs[0].shape:
                return reader
    return None


def _join(first: Op, later: Op, readers: dict[Value, list[Op]], gone: set[Op], place: dict[Op, int]) -> None:
    """Let an op also do what a later one does. It runs in the place of the later one, whose inputs are then there."""
    inner = set(first.outputs)
    kept = [use for use in later.inputs if use.value not in inner and use not in first.inputs]
    is_reduction = later.type == "BNTrainingReduce"
    first.inputs += kept
    first.outputs = [*(first.outputs if is_reduction else first.outputs[1:]), *later.outputs]
    if not is_reduction:
        first.outputs = [*later.outputs, *(value for value in first.outputs if value not in later.outputs)]
    for value in later.outputs:
        value.maker = first
    for use in later.inputs:
        readers[use.value] = [first if reader is later else reader for reader in readers[use.value]]
    first.nodes += later.nodes
    place[first] = max(place[first], place[later]) if not is_reduction else place[first]
    gone.add(later)
