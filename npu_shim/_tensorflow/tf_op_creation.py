"""Hooks on the ops that TensorFlow creates in a graph, in a function's graph, or runs in eager mode, and forms of them.

Every generated op function adds its op to a graph through one helper, and runs it eagerly through another one. The
hooks stand around both, so they see the ops of gradients, branches and loops, too. Functions of datasets run on the
host, and have no hooks. Forms (tf_op_forms.py) take the place of ops; hooks see the op that the script asks for, and
not those that its form is made of.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Callable, ContextManager, Iterator, Mapping, Sequence

import tensorflow as tf
from tensorflow.python.data.ops import dataset_ops as _dataset_ops
from tensorflow.python.eager import execute as _execute
from tensorflow.python.framework import (
    importer as _importer,
    op_def_library as _library,
    ops as _ops,
    random_seed as _random_seed,
)

from npu_shim._tensorflow import tf_gradients, tf_import_forms, tf_op_forms
from npu_shim._tensorflow.tf_graph import add_to_rehearsal_op_count, rehearsal_op_count
from npu_shim._tensorflow.types import (
    Function,
    Graph,
    GraphDef,
    Operation,
    Result,
    Structure,
    Tensor,
    Value,
)

try:
    from tensorflow.python import pywrap_tfe as _tfe
except ImportError:  # TF 1.15, where only graphs have hooks
    _tfe = None
    from tensorflow.python import pywrap_tensorflow as _pywrap
    from tensorflow.python.ops import control_flow_state as _control_flow_state
try:
    from tensorflow.python.data.ops.structured_function import StructuredFunctionWrapper as _DatasetFunction
except ImportError:  # TF 2.6 and before
    _DatasetFunction = _dataset_ops.StructuredFunctionWrapper


v1 = tf.compat.v1
_IS_1 = tf.__version__.startswith("1.")
_LIBRARY: Value = getattr(_library, "OpDefLibrary", None) if _IS_1 else _library
_STRAIGHT = "NpuShimStraightThrough"
SCOPE = "npu_shim_rehearsal/"  # of the names of ops of hooks
_PASSED = {"Identity": _STRAIGHT, "Cast": _STRAIGHT, "ClipByValue": _STRAIGHT, "Mul": _STRAIGHT}


class OpHook:
    """A hook; the methods of this class change nothing."""

    def replace_inputs(self, op_type: str, inputs: Sequence[Value]) -> list[Value]:
        """Return the inputs that an op gets instead of these, tensors of the same types and shapes."""
        return list(inputs)

    def runs_on_host(self, op_type: str) -> bool:
        """Return True for an op that eager code runs on the CPU, wherever its other ops run."""
        return False

    def note_imported_ops(self, ops: Sequence[Operation]) -> None:
        """Take note of the ops of an imported graph, whose inputs and outputs stay."""

    def replace_outputs(
        self, op_type: str, op: Operation | None, inputs: Sequence[Value], outputs: Sequence[Value]
    ) -> list[Value]:
        """Return what the creator of an op gets instead of its outputs, tensors of the same types and shapes.

        Args:
            op_type: the type.
            op: the op; None in eager mode.
            inputs: its inputs.
            outputs: what it, or the hook before, returns.
        """
        return list(outputs)


class _State(threading.local):
    suspended = 0


class _Forms:
    """Forms that take the place of ops, by the type of op; with ``leaves_graphs``, in eager mode only."""

    def __init__(self) -> None:
        self.eager: dict[str, tf_op_forms.Form] = {}
        self.of_graphs: dict[str, tf_op_forms.Form] = {}
        self.leaves_graphs = False

    @property
    def in_graphs(self) -> Mapping[str, tf_op_forms.Form]:
        """Those that ops in graphs get."""
        return {} if self.leaves_graphs else self.of_graphs


_STATE = _State()
_HOOKS: list[OpHook] = []
_FORMS = _Forms()
# Objects, names and original values of what is replaced while there are hooks or forms
_ORIGINALS: list[tuple[object, str, object]] = []


def add_hook(hook: OpHook) -> None:
    """Call a hook for each op that is created from now on; those that were added before come first."""
    if not _ORIGINALS:
        _replace_functions()
    _HOOKS.append(hook)


def remove_hook(hook: OpHook) -> None:
    """Call a hook no longer; one that is not there is left out."""
    if hook in _HOOKS:
        _HOOKS.remove(hook)
        _restore_functions()


def use_forms(forms: Mapping[str, tf_op_forms.Form], only_in_graphs: Mapping[str, tf_op_forms.Form]) -> None:
    """Let forms take the place of ops that are created from now on, by the type of op."""
    if not _ORIGINALS:
        _replace_functions()
    _FORMS.eager.update(forms)
    _FORMS.of_graphs.update({**forms, **only_in_graphs})


def disable_forms_in_graphs() -> None:
    """Let graphs have the ops that the script asks for, and none of forms, until drop_forms()."""
    _FORMS.leaves_graphs = True


def drop_forms() -> None:
    """Let ops be what they are again."""
    _FORMS.eager.clear()
    _FORMS.of_graphs.clear()
    _FORMS.leaves_graphs = False
    _restore_functions()


@contextlib.contextmanager
def suspend_hooks() -> Iterator[None]:
    """Return a context manager inside which no hook is called in this thread."""
    _STATE.suspended += 1
    try:
        yield
    finally:
        _STATE.suspended -= 1


def are_hooks_suspended() -> bool:
    """Return True inside suspended() in this thread."""
    return bool(_STATE.suspended)


@contextlib.contextmanager
def create_hook_ops(graph: Graph | None) -> Iterator[None]:
    """Return a context manager for the ops of a hook.

    No hook sees them and no tape records them. The gradient of Identity, Cast, ClipByValue and Mul is that of their
    output.

    Args:
        graph: the graph of the ops; None in eager mode.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(suspend_hooks())
        stack.enter_context(tf_gradients.stop_recording())
        if graph is None:
            yield
            return
        stack.enter_context(graph.gradient_override_map(_PASSED))
        stack.enter_context(tf.name_scope(SCOPE))
        before = graph.version
        yield
        add_to_rehearsal_op_count(graph, graph.version - before)


def record_identity_gradient(result: Tensor, source: Tensor) -> Tensor:
    """Let tapes take the gradient of a result of create_hook_ops() as that of its source. Return the result."""
    if not _STATE.suspended:
        tf_gradients.record_on_tapes(_STRAIGHT, [result], [source], lambda gradient: [gradient])
    return result


def original_tensor(tensor: Tensor) -> Tensor:
    """Return a tensor; for one that a hook has put in the place of another, that one."""
    while tensor.op.type in _PASSED and SCOPE in tensor.op.name:
        tensor = tensor.op.inputs[0]
    return tensor


def original_tensor_name(tensor: Tensor) -> str:
    """Return the name of a tensor; of one that a hook has put in the place of another, the name of that one."""
    return str(original_tensor(tensor).name)


def _restore_functions() -> None:
    while not _HOOKS and not _FORMS.of_graphs and _ORIGINALS:
        owner, name, original = _ORIGINALS.pop()
        setattr(owner, name, original)


def _replace_functions() -> None:
    with contextlib.suppress(KeyError):  # registered by an earlier hook
        tf.RegisterGradient(_STRAIGHT)(lambda op, gradient: [gradient] + [None] * (len(op.inputs) - 1))
    _replace_function(_LIBRARY, "_apply_op_helper", _apply_forms_and_hooks_to_op_helper)
    _replace_function(_ops.Graph, "_create_op_internal", _apply_hooks_to_inputs_of_new_ops)
    _replace_function(_DatasetFunction, "__init__", _suspend_hooks_in)
    if _IS_1:
        _replace_function(_random_seed, "get_seed", _get_seed_without_hook_ops)
        _replace_function(
            _control_flow_state, "ZerosLikeOutsideLoop", _with_results_of_forms(tf_op_forms.zeros_for_output)
        )
        _replace_function(_ops, "get_gradient_function", _with_results_of_forms(tf_op_forms.look_up_gradient))
    _replace_function(_execute, "record_gradient", _skip_recording_of_forms)
    _replace_function(_importer, "_import_graph_def_internal", _apply_forms_and_hooks_to_import)
    if _tfe is not None:
        _replace_function(_tfe, "TFE_Py_FastPathExecute", _apply_forms_and_hooks_to_fast_path)
        _replace_function(_execute, "execute", _apply_forms_and_hooks_to_execute)
    else:
        _replace_function(_pywrap, "TFE_Py_FastPathExecute", _apply_forms_to_fast_path_of_tf1)


def _replace_function(owner: object, name: str, make: Callable[[Function], Function]) -> None:
    original = owner.__dict__[name]
    _ORIGINALS.append((owner, name, original))
    setattr(owner, name, make(original))


def _suspend_hooks_in(original: Function) -> Function:
    def method(*args: object, **kwargs: object) -> Result:
        with suspend_hooks():
            return original(*args, **kwargs)

    return method


def _get_seed_without_hook_ops(original: Function) -> Function:
    """Return get_seed of TensorFlow 1, which takes the number of ops as a seed, as if a graph had no ops of hooks."""

    def get_seed(op_seed: int | None = None) -> tuple[int | None, int | None]:
        graph_seed, own = original(op_seed)
        if op_seed is None and own is not None and not tf.executing_eagerly():
            graph = v1.get_default_graph()
            if own == graph.version:
                own -= rehearsal_op_count(graph)
        return graph_seed, own

    return get_seed


def _with_results_of_forms(function: Function) -> Callable[[Function], Function]:
    """Return what makes a function of TensorFlow 1 know the results of forms."""
    return lambda original: functools.partial(function, original)


def _apply_hooks_to_inputs_of_new_ops(original: Function) -> Function:
    """Return Graph._create_op_internal with the inputs that the hooks return."""

    def create(graph: Graph, op_type: str, inputs: Sequence[Value], *args: object, **kwargs: object) -> Operation:
        if _HOOKS and not _STATE.suspended and inputs:
            inputs = list(inputs)
            for hook in _HOOKS:
                inputs = hook.replace_inputs(op_type, inputs)
        return original(graph, op_type, inputs, *args, **kwargs)

    return create


def _apply_forms_and_hooks_to_op_helper(original: Function) -> Function:
    """Return the helper of generated op functions with the outputs that the hooks return."""

    def helper(*args: object, **kwargs: object) -> Result:
        op_type, *name = args[_IS_1:]
        is_formed = op_type in _FORMS.in_graphs
        created = (
            _create_form_in_graph(str(op_type), dict(kwargs, name=name[0]) if name else kwargs) if is_formed else None
        )
        if created is None:
            created = original(*args, **kwargs)
        op = created[2]
        if _STATE.suspended or not _HOOKS or not op.outputs:
            return created
        outputs = list(created[3] if len(created) > 3 else op.outputs)
        changed = outputs
        for hook in _HOOKS:
            changed = hook.replace_outputs(op.type, op, op.inputs, changed)
        if all(one is other for one, other in zip(outputs, changed)):
            return created
        if isinstance(op, tf_op_forms.FormedOp):
            changed = tf_op_forms.FormOutputs(changed)
        if len(created) > 3:
            return (*created[:3], changed)
        return (*created[:2], _WithOutputs(op, changed))  # TF 1.15: the caller takes op.outputs

    return helper


def _create_form_in_graph(op_type: str, keywords: Mapping[str, Value]) -> tuple[Value, ...] | None:
    """Return what the helper of generated op functions returns for an op with a form; None if it has none."""

    def change(inputs: list[Tensor]) -> list[Tensor]:
        for hook in [] if is_suspended else _HOOKS:
            inputs = hook.replace_inputs(op_type, inputs)
        return inputs

    is_suspended = _STATE.suspended
    with suspend_hooks():
        op = tf_op_forms.create_form_in_graph(
            _FORMS.of_graphs[op_type], op_type, keywords.get("name"), keywords, change
        )
    if op is None:
        return None
    created = ([None] * len(op.outputs), False, op)
    return created if _IS_1 else (*created, op.outputs)


class _WithOutputs:
    """An op with other outputs, for the generated op functions of TensorFlow 1.15."""

    def __init__(self, op: Operation, outputs: list[Tensor]) -> None:
        self._op = op
        self.outputs = outputs

    def __getattr__(self, name: str) -> Result:
        return getattr(self._op, name)


def _apply_forms_and_hooks_to_fast_path(original: Function) -> Function:
    """Return the function that runs an op in eager mode, with the inputs and outputs that the hooks return."""

    def fast_path_execute(context: object, op_type: str, name: str | None, *args: object) -> Result:
        if _STATE.suspended or not _HOOKS:
            result = _run_form_eagerly(op_type, args) if op_type in _FORMS.eager else None
            return original(context, op_type, name, *args) if result is None else result
        inputs = [value for argument in args for value in _tensors_in_argument(argument)]
        for hook in _HOOKS:
            inputs = hook.replace_inputs(op_type, inputs)
        args = tuple(_replace_tensors(args, inputs))
        result = _run_form_eagerly(op_type, args) if op_type in _FORMS.eager else None
        if result is None:
            with _eager_device_scope(op_type):
                result = original(context, op_type, name, *args)
        several = isinstance(result, (list, tuple))
        outputs = list(result) if several else [result]
        if result is None or not all(isinstance(output, tf.Tensor) for output in outputs):
            return result
        for hook in _HOOKS:
            outputs = hook.replace_outputs(op_type, None, inputs, outputs)
        return outputs if several else outputs[0]

    return fast_path_execute


def _eager_device_scope(op_type: str) -> ContextManager[object]:
    """Return a context manager for the run of an op in eager mode."""
    is_on_host = any(hook.runs_on_host(op_type) for hook in _HOOKS)
    return tf.device("/CPU:0") if is_on_host else contextlib.nullcontext()


def _apply_forms_to_fast_path_of_tf1(original: Function) -> Function:
    """Return the function that runs an op in the eager mode of TensorFlow 1.15."""

    def fast_path_execute(
        context: object, device: object, op_type: str, name: str | None, callbacks: object, *args: object
    ) -> Result:
        result = _run_form_eagerly(op_type, args) if op_type in _FORMS.eager else None
        return original(context, device, op_type, name, callbacks, *args) if result is None else result

    return fast_path_execute


def _run_form_eagerly(op_type: str, args: Sequence[object]) -> Result | None:
    """Return the output of an op with a form, or a list of several; None if it has none."""
    with suspend_hooks():
        results = tf_op_forms.run_form_eagerly(_FORMS.eager[op_type], op_type, args)
    return results[0] if results is not None and len(results) == 1 else results


def _apply_forms_and_hooks_to_import(original: Function) -> Function:
    """Return the function that imports a GraphDef, with the forms of its nodes."""

    def import_graph_def(graph_def: GraphDef, *args: object, **kwargs: object) -> Result:
        if _FORMS.in_graphs and hasattr(graph_def, "node"):
            number = len(graph_def.node)
            graph_def = tf_import_forms.graph_def_with_forms(
                graph_def, _FORMS.eager, lambda definition, names: original(definition, return_elements=names)
            )
            add_to_rehearsal_op_count(v1.get_default_graph(), len(graph_def.node) - number)
        if _STATE.suspended or not _HOOKS:
            return original(graph_def, *args, **kwargs)
        graph = v1.get_default_graph()
        before = len(graph.get_operations())
        result = original(graph_def, *args, **kwargs)
        for hook in _HOOKS:
            hook.note_imported_ops(graph.get_operations()[before:])
        return result

    return import_graph_def


def _skip_recording_of_forms(record_gradient: Function) -> Function:
    """Return the function that records an op on tapes. Of a form, its ops are recorded already."""

    def record(op_name: str, inputs: Sequence[Tensor], attrs: object, outputs: Sequence[Tensor], *rest: object) -> None:
        if not isinstance(outputs, tf_op_forms.FormOutputs):
            record_gradient(op_name, inputs, attrs, outputs, *rest)

    return record


def _apply_forms_and_hooks_to_execute(original: Function) -> Function:
    """Return the function for the ops that the fast path does not take."""

    def execute(op_name: str | bytes, num_outputs: int, inputs: Structure, *args: object, **kwargs: object) -> Result:
        op_type = tf.compat.as_str(op_name)
        if op_type in _FORMS.eager:
            attributes: Value = args[0] if args else kwargs["attrs"]
            with suspend_hooks():
                results = tf_op_forms.run_form_eagerly(_FORMS.eager[op_type], op_type, [*inputs, *attributes])
            if results is not None:
                return tf_op_forms.FormOutputs(results)
        if _STATE.suspended or not _HOOKS:
            return original(op_name, num_outputs, inputs, *args, **kwargs)
        changed = list(inputs)
        with tf_gradients.stop_recording():  # the caller records the op with its own inputs
            for hook in _HOOKS:
                changed = hook.replace_inputs(op_type, changed)
        with _eager_device_scope(op_type):
            outputs = original(op_name, num_outputs, changed, *args, **kwargs)
        if not isinstance(outputs, list):
            return outputs
        for hook in _HOOKS:
            outputs = hook.replace_outputs(op_type, None, changed, outputs)
        return outputs

    return execute


def _tensors_in_argument(argument: object) -> list[Value]:
    """Return the tensors and variables in an argument of the fast path: one, a list with some, or none."""
    return [
        value
        for value in (argument if isinstance(argument, (list, tuple)) else [argument])
        if _is_tensor_or_variable(value)
    ]


def _replace_tensors(args: Sequence[Value], values: Sequence[Value]) -> list[Value]:
    """Return the arguments of the fast path with other tensors."""
    left = iter(values)
    return [
        [next(left) if _is_tensor_or_variable(value) else value for value in argument]
        if isinstance(argument, (list, tuple))
        else next(left)
        if _is_tensor_or_variable(argument)
        else argument
        for argument in args
    ]


def _is_tensor_or_variable(value: Value) -> bool:
    return isinstance(value, (tf.Tensor, tf.Variable))
