"""One flat list of the nodes that a step runs, functions and loop bodies included, with shapes for the values fed."""

from __future__ import annotations

import itertools
import re
from typing import Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple

from npu_shim._tensorflow import tf_api, tf_capture, tf_graph
from npu_shim._tensorflow.op_types import LOOPS
from npu_shim._tensorflow.types import Graph, Message, Operation, Tensor, Value
from npu_shim.rehearsal.assess.training_ops import GRADIENT_SCOPE

tf = tf_api.tf
Shape = Optional[Tuple[Optional[int], ...]]  # None: the rank is not known
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
# functional control flow: the attributes with functions, and the number of inputs that the functions do not take
_BODIES: dict[str, tuple[tuple[str, ...], int]] = {
    "While": (("cond", "body"), 0),
    "StatelessWhile": (("cond", "body"), 0),
    "If": (("then_branch", "else_branch"), 1),
    "StatelessIf": (("then_branch", "else_branch"), 1),
    "Case": (("branches",), 1),
    "StatelessCase": (("branches",), 1),
}
JOIN = "Merge"  # what stands in the flat graph for a result of a branch
QUEUE = re.compile(r"QueueDequeue")
_OF_OPTIONAL = "OptionalGetValue"
READERS = ("IteratorGetNext", "IteratorGetNextSync", _OF_OPTIONAL)
_OPAQUE = re.compile(  # their shapes are those that the script sets
    rf"(PyFunc|PyFuncStateless|EagerPyFunc|DatasetToSingleElement)$|{QUEUE.pattern}"
)
_MOST_SIZES = 8  # dimensions of a tensor
_REFUSED = re.compile(r"for '(?:\{\{node )?([^'}]+)")  # the node in TensorFlow's error
_Place = Tuple[int, str]  # a call of a function, 0 for the graph itself, and the name of a tensor in it


class Node:
    """An operator of a step.

    Attributes:
        name: unique among the nodes; names in functions are below that of the call.
        op: the operator type.
        inputs: pairs of the index of a node and of its output.
        controls: indices of the nodes that must run before.
        dtypes: the type of each output, a reference as its base type.
        shapes: the shape of each output with the values that this run feeds.
        declared: the shape of each output as the graph says it.
        inside: the name of the loop or branch around the node, "" if there is none.
        branches: the places of the conditions around the node, each with the number of the branch.
        joins: of a result of a condition: its place, and the numbers of the branches that its inputs come from.
        results: of a loop: what its body makes for the next run, None where it is not known.
        values: by output, integers of this run: what is fed, passed or read, or an integer variable.
        source: TensorFlow's operation, with the traceback of its creation.
        definition: its NodeDef in the flat graph.
    """

    __slots__ = (
        "branches", "controls", "declared", "definition", "dtypes", "inputs", "inside", "joins", "name", "op",
        "references", "results", "shapes", "source", "values",
    )  # fmt: skip

    def __init__(self, name: str, source: Operation, inside: str) -> None:
        self.name, self.op, self.source, self.inside = name, source.type, source, inside
        self.inputs: list[tuple[int, int]] = []
        self.controls: list[int] = []
        self.branches: list[tuple[int, int]] = []
        self.joins: tuple[int, list[int]] | None = None
        self.results: list[tuple[int, int] | None] = []
        self.values: dict[int, Value] = {}
        self.dtypes = [output.dtype.base_dtype.name for output in source.outputs]
        self.references = [tf_graph.is_variable_reference(output) for output in source.outputs]
        self.declared: list[Shape] = [static_shape(output) for output in source.outputs]
        if self.op == "FusedBatchNormV3":
            self.declared[5] = (0,)  # space for the gradient, which only GPUs use; TensorFlow says no shape
        self.shapes: list[Shape] = list(self.declared)
        self.definition: Message = None


class Flat(NamedTuple):
    """The nodes of a step, and a graph of them in which TensorFlow has inferred the shapes."""

    nodes: list[Node]
    graph: Graph


def reads_batch(kind: str, name: str) -> bool:
    """Return True for an operator that reads a batch. That of a gradient reads what a condition keeps for it."""
    return kind in READERS and not (kind == _OF_OPTIONAL and GRADIENT_SCOPE.search(name))


def static_shape(tensor: Tensor) -> Shape:
    """Return the static shape of a tensor; None for an unknown rank."""
    shape = tensor.shape
    if shape.rank is None:
        return None
    return tuple(None if size is None else int(size) for size in shape.as_list())


def flatten(
    graph: Graph,
    targets: Iterable[Operation],
    given: Mapping[str, Shape],
    values: Mapping[str, Value] | None = None,
    connected: Mapping[str, str] | None = None,
) -> Flat:
    """Return the nodes that run for some operations.

    Args:
        graph: of a session, or of a tf.function.
        targets: the operations that are fetched or run.
        given: the shapes of tensors that are fed, of arguments and of what iterators return, by the name of the tensor.
            What computes a fed tensor is not run.
        values: the integers and bools among them, by the names of the tensors. Shapes, loops or branches may depend on
            them, such as on a batch size, a length, or is_training.
        connected: the names of tensors of the graph that stand for others, by the names of these.
    """
    flattening = _Flattening(given, values or {}, connected or {})
    flattening.add_needed_nodes(graph, targets, 0, "", "")
    flattening.connect_inputs()
    return flattening.infer_shapes()


class _Flattening:
    def __init__(self, given: Mapping[str, Shape], values: Mapping[str, Value], connected: Mapping[str, str]) -> None:
        self._given = given
        self._values = values
        self._nodes: list[Node] = []
        self._at: dict[_Place, tuple[int, int]] = {}  # the node and output that computes a tensor
        self._alias = {(0, name): (0, other) for name, other in connected.items()}  # a tensor that is another one
        self._joined: dict[int, list[_Place]] = {}  # the results of the branches that a node stands for
        self._ops: dict[_Place, list[int]] = {}  # the nodes of an operation, for control dependencies
        self._calls = itertools.count(1)
        self._call_of: list[int] = []  # of each node
        self._placeholders: dict[int, Sequence[Shape]] = {}  # nodes for which placeholders of these shapes stand

    def add_needed_nodes(
        self, graph: Graph, targets: Iterable[Operation], call: int, prefix: str, inside: str
    ) -> list[int]:
        """Add what runs for some operations of a graph. Return the indices of the nodes."""
        first = len(self._nodes)
        needed = _needed_ops(targets, self._given if call == 0 else {})
        for op in (op for op in graph.get_operations() if op in needed):
            start = len(self._nodes)
            function = op.get_attr("f").name if op.type in _CALLS else op.type
            called = (
                tf_capture.function_body(graph, function)
                if op.type in _CALLS or tf_capture.is_function(graph, op.type)
                else None
            )
            if called is not None:
                self._inline_function(called, op.inputs, op.outputs, call, f"{prefix}{op.name}/", inside)
            elif not (op.outputs and (call, op.outputs[0].name) in self._alias):
                self._add_node(graph, op, call, prefix, inside)
                self._add_bodies(graph, op, call, prefix)
            self._ops[call, op.name] = list(range(start, len(self._nodes)))
        return list(range(first, len(self._nodes)))

    def _add_node(self, graph: Graph, op: Operation, call: int, prefix: str, inside: str) -> None:
        index = len(self._nodes)
        node = Node(prefix + op.name, op, inside)
        self._nodes.append(node)
        self._call_of.append(call)
        for position, output in enumerate(op.outputs):
            self._at.setdefault((call, output.name), (index, position))
        definition = tf.compat.v1.NodeDef()
        definition.CopyFrom(op.node_def)
        if op.type in _BODIES:
            definition.op = "NoOp"
        if op.type in _BODIES or op.type == "NoOp":
            definition.attr.clear()
        definition.device = ""
        for attribute in [name for name in definition.attr if name.startswith("_")]:
            del definition.attr[attribute]
        node.definition = definition
        if call == 0 or op.type in READERS:
            self._set_given_shapes(graph, op, node, index)
        if _OPAQUE.match(op.type):
            self._placeholders[index] = _shapes_of_queue(op, node) if QUEUE.match(op.type) else node.declared

    def _set_given_shapes(self, graph: Graph, op: Operation, node: Node, index: int) -> None:
        names = [output.name for output in op.outputs]
        if op.type == "Placeholder" and names[0] not in self._given:
            self._set_captured_shape(graph, op, node)
        node.values.update((place, self._values[name]) for place, name in enumerate(names) if name in self._values)
        if not any(name in self._given or name in self._values for name in names):
            return
        shapes = [self._given.get(name, shape) for name, shape in zip(names, node.declared)]
        # a function's arguments have shapes already, so a short list of integers is no shape but a small batch
        most = 0 if hasattr(graph, "outer_graph") else 1
        is_size = node.values and node.values[min(node.values)].ndim <= most
        if is_size and op.type not in READERS and node.values[0].size <= _MOST_SIZES:
            node.definition = _constant_node(node.values[0], op.outputs[0])
        elif op.type in READERS:
            _set_shapes_attribute(node.definition, "output_shapes", shapes)
        elif op.type == "Placeholder":
            node.definition.attr["shape"].shape.CopyFrom(_shape_proto(shapes[0]))
        else:
            self._placeholders[index] = shapes

    def _set_captured_shape(self, graph: Graph, op: Operation, node: Node) -> None:
        """Let the placeholder of a captured tensor have its shape, or be the variable that is captured."""
        for outer, inner in getattr(graph, "captures", ()):
            if inner is not op.outputs[0]:
                continue
            kind = tf_capture.variable_type_and_shape(outer) if outer.dtype == tf.resource else None
            if kind is not None:
                variable = tf_capture.captured_variable(graph, outer)
                node.op = node.definition.op = "VarHandleOp"
                node.definition.attr.clear()
                node.definition.attr["dtype"].type = kind[0].as_datatype_enum
                node.definition.attr["shape"].shape.CopyFrom(kind[1].as_proto())
                node.definition.attr["shared_name"].s = tf.compat.as_bytes(
                    op.name if variable is None else variable.name
                )
                value = tf_capture.integer_value(outer, *kind)
                node.values = {} if value is None else {0: value}
            elif outer.dtype not in (tf.resource, tf.variant):
                node.definition.attr["shape"].shape.CopyFrom(outer.shape.as_proto())
            return

    def _add_bodies(self, graph: Graph, op: Operation, call: int, prefix: str) -> None:
        """Add the functions of a loop or condition once each. The results of a loop are those of its body."""
        attributes, skipped = _BODIES.get(op.type, ((), 0))
        owner, results = len(self._nodes) - 1, {}
        for attribute in attributes:
            functions = op.get_attr(attribute)
            for number, function in enumerate(functions if isinstance(functions, list) else [functions]):
                called = tf_capture.function_body(graph, function.name)
                if called is None:
                    continue
                inputs, outputs = list(op.inputs)[skipped:], [] if skipped or attribute == "cond" else op.outputs
                first, below = len(self._nodes), f"{prefix}{op.name}/{attribute}/"
                inner = self._inline_function(called, inputs, outputs, call, below, prefix + op.name)
                if skipped:
                    number += attribute == "then_branch"
                    results[number] = [(inner, value.name) for value in _output_tensors(called)]
                    for node in self._nodes[first:]:
                        node.branches.append((owner, number))
        for position, output in enumerate(op.outputs if results else ()):
            self._add_join(op, output, call, owner, {branch: places[position] for branch, places in results.items()})

    def _add_join(self, op: Operation, output: Tensor, call: int, owner: int, results: dict[int, _Place]) -> None:
        """Add the node that stands for a result of a condition: that of one of its branches."""
        index, around = len(self._nodes), self._nodes[owner]
        node = Node(f"{around.name}/{output.name.rpartition(':')[2]}", op, around.inside)
        node.op, node.joins = "Identity", (owner, list(results))
        node.dtypes, node.references = [output.dtype.base_dtype.name], [False]
        node.shapes, node.declared = [static_shape(output)], [static_shape(output)]
        node.definition = tf.compat.v1.NodeDef(op=JOIN)
        node.definition.attr["T"].type = output.dtype.base_dtype.as_datatype_enum
        self._nodes.append(node)
        self._call_of.append(call)
        self._at[call, output.name] = (index, 0)
        self._joined[index] = list(results.values())

    def _inline_function(
        self,
        called: Graph,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        call: int,
        prefix: str,
        inside: str,
    ) -> int:
        """Add the body of a function. Its arguments are the inputs, its results the outputs. Return its call."""
        inner = next(self._calls)
        for argument, value in zip(_argument_tensors(called), inputs):
            self._alias[inner, argument.name] = (call, value.name)
        self.add_needed_nodes(called, _always_run_ops(called), inner, prefix, inside)
        for output, value in zip(outputs, _output_tensors(called)):
            self._alias[call, output.name] = (inner, value.name)
        return inner

    def _resolve_alias(self, place: _Place) -> tuple[int, int] | None:
        seen = set()
        while place in self._alias and place not in seen:
            seen.add(place)
            place = self._alias[place]
        return self._at.get(place)

    def connect_inputs(self) -> None:
        """Find the nodes that compute the inputs of each node."""
        for index, (node, call) in enumerate(zip(self._nodes, self._call_of)):
            places = self._joined.get(index, [(call, value.name) for value in node.source.inputs])
            sources = [self._resolve_alias(place) for place in places]
            if node.joins:
                node.joins = (node.joins[0], [branch for branch, source in zip(node.joins[1], sources) if source])
            node.inputs = [source for source in sources if source is not None and source[0] != index]
            if node.op in LOOPS:
                node.results = [self._resolve_alias((call, output.name)) for output in node.source.outputs]
            if node.joins and not node.inputs:
                self._placeholders[index] = node.declared
            before = [self._ops.get((call, op.name), []) for op in node.source.control_inputs]
            node.controls = sorted({control for ops in before for control in ops if control != index})
        self._set_frames()

    def _set_frames(self) -> None:
        """Let the nodes of a loop of TensorFlow 1 be inside it. A node follows its inputs in the list."""
        around: dict[int, str] = {}  # the frame of what a node makes
        parents = {"": ""}
        for index, node in enumerate(self._nodes):
            before = [source for source, _ in node.inputs] + node.controls
            frame = max((around[source] for source in before if source in around), key=len, default="")
            if node.op in ("Enter", "RefEnter"):
                name = node.definition.attr["frame_name"].s.decode()
                around[index] = f"{frame}/{name}" if frame else name
                parents[around[index]] = frame
            elif frame:
                around[index] = parents[frame] if node.op in ("Exit", "RefExit") else frame
                node.inside = node.inside or around[index]

    def infer_shapes(self) -> Flat:
        """Give the nodes names of their own, and the shapes that TensorFlow infers."""
        for node, name in zip(self._nodes, _unique_names([node.name for node in self._nodes])):
            node.name = name
        flat = infer_shapes(self._nodes, self._placeholders)
        looked_up = {
            index: shapes for index, shapes in _shapes_of_lookups(self._nodes) if index not in self._placeholders
        }
        return infer_shapes(self._nodes, {**self._placeholders, **looked_up}) if looked_up else flat


def _shapes_of_lookups(nodes: Sequence[Node]) -> Iterator[tuple[int, list[Shape]]]:
    """Yield the places of look-ups in tables and the shapes of their results, which TensorFlow does not infer."""
    for index, node in enumerate(nodes):
        if node.op in ("LookupTableFind", "LookupTableFindV2") and len(node.inputs) > 1:
            source, output = node.inputs[1]
            keys, result = nodes[source].shapes[output], node.declared[0]
            if keys is not None and result is not None and len(keys) == len(result) and None in result:
                yield index, [keys]


def infer_shapes(nodes: list[Node], placeholders: Mapping[int, Sequence[Shape]]) -> Flat:
    """Import nodes into a graph of their own, and take the shapes that TensorFlow infers there.

    Args:
        nodes: with their inputs among each other.
        placeholders: by the place of nodes, the shapes of placeholders that stand for them.
    """
    definition = tf.compat.v1.GraphDef()
    definition.versions.producer = tf.compat.v1.get_default_graph().graph_def_versions.producer
    for index, node in enumerate(nodes):
        own = tf.compat.v1.NodeDef()
        own.CopyFrom(node.definition)
        own.name, node.definition = node.name, own
        if index in placeholders:
            own.op = "Placeholder"
            for output, shape in enumerate(placeholders[index]):
                stand = definition.node.add(name=f"{node.name}__{output}", op="Placeholder")
                stand.attr["dtype"].type = tf.as_dtype(node.dtypes[output]).as_datatype_enum
                stand.attr["shape"].shape.CopyFrom(_shape_proto(shape))
            continue
        del own.input[:]
        if own.op in (JOIN, "RefMerge"):
            own.attr["N"].i = len(node.inputs)
        for source, output in node.inputs if own.op not in ("NoOp", "Const") else ():
            name, mark = nodes[source].name, "__" if source in placeholders else ":"
            own.input.append(f"{name}{mark}{output}")
        definition.node.add().CopyFrom(own)
    try:
        graph = tf_capture.import_into_new_graph(definition)
    except ValueError as error:  # the sizes of this run are none for an operator, in a branch that is not taken
        refused = _REFUSED.search(str(error))
        places = [index for index, node in enumerate(nodes) if refused and node.name == refused.group(1)]
        if not places or places[0] in placeholders:
            raise
        return infer_shapes(nodes, {**placeholders, places[0]: nodes[places[0]].declared})
    for index, node in enumerate(nodes):
        if index in placeholders:
            node.shapes = [merged_shape(a, b) for a, b in zip(placeholders[index], node.declared)]
        elif node.definition.op != "NoOp":
            outputs = graph.get_operation_by_name(node.name).outputs
            node.shapes = [merged_shape(static_shape(new), old) for new, old in zip(outputs, node.declared)]
    return Flat(nodes, graph)


def _needed_ops(targets: Iterable[Operation], given: Mapping[str, Shape]) -> set[Operation]:
    """Return the operations that run for some others. Those before a value that is given do not run."""

    def ops_before(op: Operation) -> list[Operation]:
        is_given = op.outputs and all(output.name in given for output in op.outputs)
        return [] if is_given and not op.type.startswith("IteratorGet") else tf_graph.input_and_control_ops(op)

    return set(tf_graph.reachable_nodes(targets, ops_before))


def _shapes_of_queue(op: Operation, node: Node) -> list[Shape]:
    """Return the shapes of what a queue returns; of several elements, as many as are asked for."""
    number = tf_api.static_value(op.inputs[1]) if len(op.inputs) > 1 else None
    if number is None:
        return node.declared
    return [shape if shape is None else (int(number), *shape[1:]) for shape in node.declared]


def _argument_tensors(graph: Graph) -> list[Tensor]:
    inputs = getattr(graph, "inputs", None)
    return (
        [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"] if inputs is None else list(inputs)
    )


def _output_tensors(graph: Graph) -> list[Tensor]:
    return list(getattr(graph, "outputs", ()))


def _always_run_ops(graph: Graph) -> list[Operation]:
    """Return the operations that a call of a function runs in any case."""
    ends = [output.op for output in _output_tensors(graph)] + list(getattr(graph, "control_outputs", ()))
    return ends if hasattr(graph, "control_outputs") or ends else graph.get_operations()


def _unique_names(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        name = re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", name)
        name = name if re.match(r"[A-Za-z0-9.]", name) else "n" + name
        number = seen.get(name, 0)
        seen[name] = number + 1
        unique.append(name if not number else f"{name}__again_{number}")
    return unique


def _shape_proto(shape: Shape) -> Message:
    return tf.TensorShape(shape).as_proto()


def _constant_node(value: Value, tensor: Tensor) -> Message:
    """Return the definition of a node with a value in place of a tensor."""
    definition = tf.compat.v1.NodeDef(op="Const")
    definition.attr["dtype"].type = tensor.dtype.as_datatype_enum
    definition.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tensor.dtype))
    return definition


def _set_shapes_attribute(definition: Message, attribute: str, shapes: Sequence[Shape]) -> None:
    definition.attr[attribute].list.Clear()
    for shape in shapes:
        definition.attr[attribute].list.shape.add().CopyFrom(_shape_proto(shape))


def merged_shape(first: Shape, second: Shape) -> Shape:
    """Return the sizes of the first shape, and those of the second where the first has none."""
    if first is None or second is None or len(first) != len(second):
        return second if first is None else first
    return tuple(b if a is None else a for a, b in zip(first, second))
