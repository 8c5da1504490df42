"""The ops of the nodes of a graph, without types in memory, layouts and fusions."""

from __future__ import annotations

import re
from typing import Callable, Collection, NamedTuple, Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim.rehearsal.assess.device_forms import COLLECTIVE
from npu_shim.rehearsal.assess.flat import Node, Shape
from npu_shim.rehearsal.assess.memory import execution_order
from npu_shim.rehearsal.assess.work import repetitions_in_step
from npu_shim.rehearsal.predict.composed import DROPOUT, LAYER_NORM, Composed, composed_ops
from npu_shim.rehearsal.predict.device_graph import KEPT, TABLE, Op, Use, Value, types_pattern
from npu_shim.rehearsal.predict.features import product_of_sizes
from npu_shim.rehearsal.predict.phases import phases_of_nodes

_SOURCE, _FREE, _REMOVED = map(types_pattern, ("source", "free", "removed"))
_KEEPS = types_pattern("free if it keeps elements")
_NAMES: dict[str, str] = TABLE["names"]
_NO_VALUES = ("resource", "variant", "string")
_DRAWS = ("Random", "Stateful", "Multinomial", "Truncated")  # their results are no constants
_IMAGES = types_pattern("convolution layout")
_UPDATES = re.compile(
    r"(Resource)?((Sparse)?Apply[A-Z]|Assign[A-Z]|Scatter(Nd)?(Add|Sub|Mul|Div|Min|Max|Update))|Assign$"
)
_EFFECTS = re.compile(rf"{_UPDATES.pattern}|{COLLECTIVE.pattern}|NoOp|Npu")


class NodeProperties(NamedTuple):
    """The properties of the nodes of a step that follow from the graph alone, in any precision.

    Attributes:
        order: in which they run.
        phases: of each.
        composed: the ops that several of them are.
        unread: those whose results nothing reads.
    """

    order: list[int]
    phases: list[str]
    composed: list[Composed]
    unread: set[int]


def properties_of_nodes(nodes: Sequence[Node]) -> NodeProperties:
    """Return the properties of the nodes of a step that follow from the graph alone."""
    order = execution_order(nodes)
    phases = phases_of_nodes(nodes, order)
    return NodeProperties(order, phases, composed_ops(nodes, phases), _unread_nodes(nodes, order))


class OpsOfNodes:
    """Makes the ops of the nodes of a step."""

    def __init__(
        self,
        nodes: Sequence[Node],
        is_half: Sequence[bool],
        host: Collection[int],
        trips: dict[str, int],
        half: str,
        properties: NodeProperties,
    ) -> None:
        self._nodes, self._is_half, self._trips, self._half = nodes, is_half, trips, half
        self._host = frozenset(host)
        self._order, self._phases, self._composed, self._unread = properties
        self._at: dict[tuple[int, int], Value] = {}
        self._masks: dict[Value, Value] = {}
        self._made: list[Op] = []
        self._index = 0
        self._parts = {i for op in self._composed for i in op.nodes}
        self._uses_of: dict[int, list[Use]] = {}
        self._surplus: set[Value] = set()  # parts of a gradient that one op makes whole
        self._gradients_of = {key for node in nodes if node.op in ("ReluGrad", "MaxPoolGrad") for key in node.inputs}

    def ops(self) -> list[Op]:
        """Return the ops in an order in which they can run."""
        for index in self._order:
            self._index = index
            node = self._nodes[index]
            uses = [self._use(*key) for key in node.inputs if key in self._at]
            if self._index in self._host or _SOURCE.match(node.op):
                self._set_source_outputs(node)
            elif index in self._unread:
                self._set_outputs([Value(shape, dtype) for shape, dtype in zip(node.shapes, node.dtypes)])
            elif index in self._parts:
                self._set_outputs([self.new_value(shape, dtype) for shape, dtype in zip(node.shapes, node.dtypes)])
                self._uses_of[index] = uses
            elif _REMOVED.match(node.op) or _has_only_constants(node, uses):
                self._set_outputs([Value(shape, dtype, "constant") for shape, dtype in zip(node.shapes, node.dtypes)])
            elif _FREE.match(node.op) or _changes_nothing(node, uses):
                self._set_outputs(self._inputs_as_outputs(node, uses))
            elif all(dtype in _NO_VALUES for dtype in node.dtypes) and node.dtypes and "TensorList" not in node.op:
                self._set_source_outputs(node)
            else:
                by_type = OpsOfNodes._add_update if _UPDATES.match(node.op) else OpsOfNodes._add_plain
                _EXPANSIONS.get(node.op, by_type)(self, node, uses)
        self._add_composed_ops()
        return self._made

    def _use(self, source: int, output: int) -> Use:
        value, maker = self._at[source, output], self._nodes[source]
        is_handle = maker.dtypes[output] == "resource"  # the tensor is that of its variable
        return Use(value, value.shape if is_handle else _sizes(maker.shapes[output]))

    def _add_composed_ops(self) -> None:
        """Add the ops that several nodes are: each reads what others make, and makes what others read."""
        kind_of = {i: (place, op.type) for place, op in enumerate(self._composed) for i in op.nodes}
        read: dict[int, dict[Value, None]] = {}  # by each composed op: what ops of other kinds read
        for i, node in enumerate(self._nodes):
            for key in node.inputs:
                maker, reader = kind_of.get(key[0]), kind_of.get(i)
                if maker and (reader is None or not reader[1].startswith(maker[1].replace("Grad", ""))):
                    read.setdefault(maker[0], {})[self._at[key]] = None
        for place, composed in enumerate(self._composed):
            self._index = composed.nodes[0]
            own = {self._at[i, output] for i in composed.nodes for output in range(len(self._nodes[i].dtypes))}
            uses = {use.value: use for i in composed.nodes for use in self._uses_of.get(i, ()) if use.value not in own}
            inputs = [use for use in uses.values() if use.value.dtype.startswith(("float", "bfloat"))]
            inputs = [use for use in inputs if use.value.kind != "constant"]
            outputs = [value for value in read.get(place, {}) if value.dtype.startswith(("float", "bfloat"))]
            if inputs and outputs:
                self._add_composed(composed, inputs, outputs)
        for op in self._made:
            op.inputs = [use for use in op.inputs if use.value not in self._surplus]

    def _add_composed(self, composed: Composed, inputs: list[Use], outputs: list[Value]) -> None:
        first = len(self._made)
        lead = max(inputs, key=lambda use: product_of_sizes(use.shape))
        for value in outputs:
            value.stored = lead.value.stored if value.shape == lead.shape else value.stored
        largest = [value for value in outputs if value.shape == lead.shape]
        if composed.type.startswith(DROPOUT):
            mask = Value((-(-product_of_sizes(lead.shape) // 128) * 16,), "uint8")
            if composed.type == DROPOUT:
                self.add_op("DropOutGenMask", [], [mask])
            self.add_op("DropOutDoMask", [lead, Use(mask, mask.shape)], largest[:1])
        elif composed.type == LAYER_NORM:
            rows = (*lead.shape[:-1], 1)
            statistics = [Value(rows, "float32", KEPT) for _ in range(2)]
            self.add_op("LayerNorm", inputs, [*largest[:1], *statistics])
        elif composed.type.startswith(LAYER_NORM):
            full = Value(lead.shape, "float32", KEPT)
            vectors = [value for value in outputs if value not in largest]
            large = [use for use in inputs if use.shape == lead.shape][:2]
            rows = (*lead.shape[:-1], 1)
            rest = [Use(Value(rows, "float32", KEPT), rows) for _ in range(2)]
            self.add_op("LayerNormXBackpropV2", [*large, *rest], [*largest[:1], full])
            self.add_op("LayerNormBetaGammaBackpropV2", [large[0], Use(full, full.shape)], vectors)
        else:
            self.add_op(composed.type, inputs, outputs)
        if composed.type.startswith((DROPOUT, LAYER_NORM)):
            self._surplus.update(largest[1:])
        for op in self._made[first:]:
            op.nodes, op.is_half = list(composed.nodes), lead.value.stored == self._half

    def _set_outputs(self, values: Sequence[Value]) -> None:
        for output, value in enumerate(values):
            self._at[self._index, output] = value

    def _set_source_outputs(self, node: Node) -> None:
        kind = "constant" if node.op == "Const" else "variable" if "Var" in node.op else ""
        shapes, dtypes = list(node.shapes), list(node.dtypes)
        if node.op == "VarHandleOp":
            attributes = node.definition.attr
            shapes = [tuple(dim.size for dim in attributes["shape"].shape.dim)]
            dtypes = [tf.as_dtype(attributes["dtype"].type).name]
        self._set_outputs([Value(shape, dtype, kind) for shape, dtype in zip(shapes, dtypes)])

    def _inputs_as_outputs(self, node: Node, uses: Sequence[Use]) -> list[Value]:
        """Return the inputs as the outputs; a loop's or branch's first input stands for both."""
        if not uses:
            return [Value(shape, dtype) for shape, dtype in zip(node.shapes, node.dtypes)]
        return [
            uses[min(output, len(uses) - 1) if node.op == "IdentityN" else 0].value
            for output in range(len(node.dtypes))
        ]

    def new_value(self, shape: Shape, dtype: str) -> Value:
        """Return a new tensor, in 16 bits if mixed precision reduces the node."""
        result = Value(shape, dtype)
        if self._is_half[self._index] and dtype == "float32":
            result.stored = self._half
        return result

    def add_op(self, type: str, inputs: Sequence[Use], outputs: Sequence[Value]) -> Op:
        """Add an op of the node."""
        op = Op(type, inputs, outputs)
        node = self._nodes[self._index]
        op.nodes, op.phase = [self._index], self._phases[self._index]
        op.times = repetitions_in_step(node, self._trips)
        op.is_half = self._is_half[self._index]
        if _IMAGES.match(type):
            op.axes = node.definition.attr["data_format"].s.decode() or "NHWC"
        self._made.append(op)
        return op

    def _add_plain(self, node: Node, uses: Sequence[Use]) -> None:
        """Add the op of the node's type. Constant integers are attributes of the op."""
        kept = [use for use in uses if use.value.kind != "constant" or not use.value.dtype.startswith("int")]
        kept = [use for use in kept if use.value.dtype not in _NO_VALUES]
        outputs = [self.new_value(shape, dtype) for shape, dtype in zip(node.shapes, node.dtypes)]
        tensors = [value for value in outputs if value.dtype not in _NO_VALUES]
        self.add_op(_NAMES.get(node.op, node.op.replace("Resource", "")), kept, tensors)
        self._set_outputs(outputs)

    def _add_cast(self, node: Node, uses: Sequence[Use]) -> None:
        (source, target) = uses[0].value, self.new_value(node.shapes[0], node.dtypes[0])
        if source.stored == target.stored:
            self._set_outputs([source])
        else:
            self._add_plain(node, uses)

    def _add_update(self, node: Node, uses: Sequence[Use]) -> None:
        """An update writes its variables; of a sparse one, the rows of the gradient."""
        variables = [use for use in uses if use.value.kind == "variable"]
        if not variables:
            return self._add_plain(node, uses)
        variables = variables if "Apply" in node.op else variables[:1]
        type = _NAMES.get(node.op, node.op.replace("Resource", ""))
        if "Sparse" in type or "Scatter" in type:
            rows = [use for use in uses if use not in variables and len(use.shape) and use.value.kind != "constant"]
            changed = max((use.shape for use in rows), key=product_of_sizes, default=())
            self.add_op(type, variables[:1] + rows, [Value(changed, variables[0].value.dtype) for _ in variables])
        else:
            self.add_op(type, uses, [Value(use.value.shape, use.value.dtype) for use in variables])
        self._set_outputs([use.value for use in variables[:1]] * len(node.dtypes))

    def _add_batch_norm(self, node: Node, uses: Sequence[Use]) -> None:
        y = self.new_value(node.shapes[0], node.dtypes[0])
        vectors = [Value(shape, "float32") for shape in node.shapes[1:5]]
        if not node.definition.attr["is_training"].b:
            self.add_op("BNInfer", uses, [y])
        else:
            sums = [Value(uses[1].shape, "float32") for _ in range(2)]
            self.add_op("BNTrainingReduce", uses[:1], sums)
            parts = [*uses[:1], *(Use(vector, vector.shape) for vector in sums), *uses[1:3]]
            self.add_op("BNTrainingUpdate", parts, [y, *vectors])
        self._set_outputs([y, *vectors, Value((0,), "float32")])

    def _add_batch_norm_gradient(self, node: Node, uses: Sequence[Use]) -> None:
        dx, *rest = [self.new_value(shape, dtype) for shape, dtype in zip(node.shapes, node.dtypes)]
        gradients = [Value(uses[2].shape, "float32") for _ in range(2)]
        self.add_op("BNTrainingUpdateGrad", [*uses[:2], *uses[3:5]], gradients)
        vectors = [Use(vector, vector.shape) for vector in gradients]
        if node.definition.attr["is_training"].b:
            self.add_op("BNTrainingReduceGrad", [*uses[:2], *vectors, *uses[2:5]], [dx])
        else:
            self.add_op("BNInferGrad", [uses[0], uses[2], uses[4]], [dx])
        self._set_outputs([dx, *gradients, *rest[2:]])

    def _add_convolution(self, node: Node, uses: Sequence[Use]) -> None:
        """The gradient of the input has it before the filter, that of the filter has no filter."""
        type = _NAMES.get(node.op, node.op)
        floats = [use for use in uses if not use.value.dtype.startswith("int")]
        result = self.new_value(node.shapes[0], node.dtypes[0])
        inputs = floats[::-1] if type.endswith("BackpropInput") else floats
        op = self.add_op(type, inputs, [result])
        depthwise, spatial = type.startswith("Depthwise"), "DHW" if "3D" in type else "HW"
        axes = spatial + ("CM" if depthwise else "IO")
        if type.endswith("BackpropFilter"):
            result.stored, result.axes = "float32", axes  # the matrix unit sums in float32
        else:
            op.filter, inputs[1].value.axes = 1, axes
        self._set_outputs([result])

    def _add_einsum(self, node: Node, uses: Sequence[Use]) -> None:
        """Two operands: a product of the letters of both, summed over those that the result lacks."""
        equation = node.definition.attr["equation"].s.decode().replace(" ", "")
        operands, _, result = equation.partition("->")
        first, _, second = operands.partition(",")
        if not second or "." in equation or len(uses) != 2:
            return self._add_plain(node, uses)
        sizes = dict(zip(first + second, [*uses[0].shape, *uses[1].shape]))
        summed = product_of_sizes(sizes[letter] for letter in set(first) & set(second) - set(result))
        batch = [sizes[letter] for letter in first if letter in second and letter in result]
        rows, columns = (
            product_of_sizes(sizes[letter] for letter in result if letter in own and letter not in other)
            for own, other in ((first, second), (second, first))
        )
        shapes = [(*batch, rows, summed), (*batch, summed, columns)]
        product = self.new_value((*batch, rows, columns), node.dtypes[0])
        inputs = [Use(use.value, shape) for use, shape in zip(uses, shapes)]
        self.add_op("BatchMatMul" if batch else "MatMulV2", inputs, [product])
        self._set_outputs([product])
        return None

    def _add_relu(self, node: Node, uses: Sequence[Use]) -> None:
        y = self.new_value(node.shapes[0], node.dtypes[0])
        outputs = [y]
        if (self._index, 0) in self._gradients_of:
            mask = Value(y.shape, "uint8")
            mask.mask_of, self._masks[y] = y, mask
            outputs.append(mask)
        self.add_op("ReluV2", uses, outputs)
        self._set_outputs([y])

    def _add_relu_gradient(self, node: Node, uses: Sequence[Use]) -> None:
        mask = self._masks.get(uses[-1].value)
        self._add_plain(node, [uses[0], Use(mask, mask.shape)] if mask else uses)

    def _add_max_pool(self, node: Node, uses: Sequence[Use]) -> None:
        """With its gradient, the pooling returns the places of the largest elements, 16 bits for each in a window."""
        y = self.new_value(node.shapes[0], node.dtypes[0])
        outputs, type = [y], "MaxPool"
        if (self._index, 0) in self._gradients_of:
            attributes = node.definition.attr
            sizes = dict(zip(attributes["data_format"].s.decode() or "NHWC", y.shape))
            window = product_of_sizes(attributes["ksize"].list.i)
            rows = -(-sizes["H"] * sizes["W"] // 16) + 1
            places = Value((sizes["N"], -(-sizes["C"] // 16), window, rows, 16), "uint16")
            outputs, type, self._masks[y] = [y, places], "MaxPoolWithArgmax", places
        self.add_op(type, uses, outputs)
        self._set_outputs([y])

    def _add_max_pool_gradient(self, node: Node, uses: Sequence[Use]) -> None:
        places = self._masks.get(uses[1].value)
        dx = self.new_value(node.shapes[0], node.dtypes[0])
        if places is None:
            self.add_op(node.op, uses, [dx])
        else:
            self.add_op("MaxPoolGradWithArgmax", [uses[0], uses[2], Use(places, places.shape)], [dx])
        self._set_outputs([dx])

    def _add_sparse_cross_entropy(self, node: Node, uses: Sequence[Use]) -> None:
        one_hot = Value(uses[0].shape, "float32")
        self.add_op("OneHotD", uses[1:], [one_hot])
        loss, gradient = (Value(shape, "float32") for shape in node.shapes)
        self.add_op("SoftmaxCrossEntropyWithLogits", [uses[0], Use(one_hot, one_hot.shape)], [loss, gradient])
        self._set_outputs([loss, gradient])


def _sizes(shape: Shape) -> tuple[int, ...]:
    return tuple(1 if size is None else size for size in shape or ())


def _changes_nothing(node: Node, uses: Sequence[Use]) -> bool:
    """Return True for a reduction, slice, tile or padding that keeps all elements."""
    return bool(_KEEPS.match(node.op) and uses) and product_of_sizes(uses[0].shape) == product_of_sizes(
        _sizes(node.shapes[0])
    )


def _unread_nodes(nodes: Sequence[Node], order: Sequence[int]) -> set[int]:
    """Return the nodes that others only wait for, as for the gradients of inputs that an optimizer groups with others.

    TensorFlow and the compiler remove them, and what only they read.
    """
    readers: list[list[int]] = [[] for _ in nodes]
    is_ordered = [False] * len(nodes)
    for i, node in enumerate(nodes):
        for source, _ in node.inputs:
            readers[source].append(i)
        for source in node.controls:
            is_ordered[source] = True
    unread: set[int] = set()
    for i in reversed(order):
        is_pure = not nodes[i].inside and not _EFFECTS.match(nodes[i].op)
        if is_pure and (readers[i] or is_ordered[i]) and unread.issuperset(readers[i]):
            unread.add(i)
    return unread


def _has_only_constants(node: Node, uses: Sequence[Use]) -> bool:
    """Return True if the compiler computes a node: it has only constants."""
    is_constant = bool(uses) and len(uses) == len(node.inputs) and all(use.value.kind == "constant" for use in uses)
    return is_constant and not any(word in node.op for word in _DRAWS)


_EXPANSIONS: dict[str, Callable[[OpsOfNodes, Node, Sequence[Use]], None]] = {
    "Cast": OpsOfNodes._add_cast,
    "Relu": OpsOfNodes._add_relu,
    "ReluGrad": OpsOfNodes._add_relu_gradient,
    "MaxPool": OpsOfNodes._add_max_pool,
    "MaxPoolGrad": OpsOfNodes._add_max_pool_gradient,
    "Einsum": OpsOfNodes._add_einsum,
    "SparseSoftmaxCrossEntropyWithLogits": OpsOfNodes._add_sparse_cross_entropy,
    **{f"FusedBatchNorm{version}": OpsOfNodes._add_batch_norm for version in ("", "V2", "V3")},
    **{f"FusedBatchNormGrad{version}": OpsOfNodes._add_batch_norm_gradient for version in ("", "V2", "V3")},
    **{
        f"{kind}{part}": OpsOfNodes._add_convolution
        for kind in ("Conv2D", "DepthwiseConv2dNative")
        for part in ("", "BackpropInput", "BackpropFilter")
    },
    **{f"Conv3D{part}": OpsOfNodes._add_convolution for part in ("", "BackpropInputV2", "BackpropFilterV2")},
}
