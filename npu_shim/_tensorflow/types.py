"""Names for TensorFlow's types in annotations.

TensorFlow has no type information in some of the supported versions, so a type checker sees Any behind each name.
A reader sees which object is meant. They are for annotations only.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence, Union

if TYPE_CHECKING:
    from typing import Protocol
else:  # Python 3.7
    Protocol = object

Unknown = Any  # what no type information is known of; the names below say which object it is
Opaque = object  # of which npu_shim uses no attribute: it only hands it on

Tensor = Unknown  # tf.Tensor
EagerTensor = Unknown  # tf.Tensor in eager mode
Value = Unknown  # an array or number, as a session or a dataset returns it
Operation = Unknown  # tf.Operation
Gradient = Unknown  # tf.Tensor, tf.IndexedSlices or None
Variable = Unknown  # tf.Variable, or a ref variable of TensorFlow 1
Graph = Unknown  # tf.Graph
DType = Unknown  # tf.DType, or what tf.as_dtype takes
TensorShape = Unknown  # tf.TensorShape, or what it is made of
Dataset = Unknown  # tf.data.Dataset, of TensorFlow 1 or 2
Iterator = Unknown  # tf.data.Iterator, of TensorFlow 1 or 2
DatasetOptions = Opaque  # tf.data.Options
Queue = Unknown  # tf.queue.QueueBase
QueueRunner = Unknown  # tf.compat.v1.train.QueueRunner
RNNCell = Opaque  # tf.compat.v1.nn.rnn_cell.RNNCell
VariableScope = Opaque  # tf.compat.v1.VariableScope, or its name
Session = Unknown  # tf.compat.v1.Session
Supervisor = Unknown  # tf.compat.v1.train.Supervisor
FeedDict = Dict[Unknown, Unknown]  # tensor, or its name, to value
Fetches = Unknown  # what session.run takes: tensors, ops, names, nested
CallableOptions = Unknown  # the protobuf message with the names of what a callable of a session fetches and is fed

GraphDef = Unknown  # tf.compat.v1.GraphDef
ConfigProto = Unknown  # tf.compat.v1.ConfigProto
RewriterConfig = Unknown  # its field graph_options.rewrite_options
CustomOptimizer = Unknown  # an entry of RewriterConfig.custom_optimizers
Message = Unknown  # another protobuf message

RunConfig = Unknown  # tf.estimator.RunConfig
Estimator = Unknown  # tf.estimator.Estimator
EstimatorClass = Unknown  # its class
EstimatorModule = Unknown  # tf.estimator; None where TensorFlow has none
EstimatorSpec = Unknown  # tf.estimator.EstimatorSpec
SessionRunHook = Unknown  # tf.compat.v1.train.SessionRunHook
SessionRunArgs = Unknown  # tf.compat.v1.train.SessionRunArgs
Scaffold = Opaque  # tf.compat.v1.train.Scaffold
Saver = Unknown  # tf.compat.v1.train.Saver
CheckpointSaverListener = Unknown  # tf.compat.v1.train.CheckpointSaverListener
EventWriter = Unknown  # tf.compat.v1.summary.FileWriter
WarmStartSettings = Opaque  # tf.estimator.WarmStartSettings
InputContext = Opaque  # tf.distribute.InputContext
NpuDevice = Unknown  # the handle of npu.open(), of npu_shim or of the vendor
Device = Unknown  # what tf.device takes: a name, a tf.DeviceSpec, a function of ops, or None
Strategy = Unknown  # tf.distribute.Strategy
ReduceOp = Opaque  # tf.distribute.ReduceOp
ClusterResolver = Opaque  # tf.distribute.cluster_resolver.ClusterResolver
StrategyExtended = Unknown  # its attribute extended
KerasCallback = Unknown  # tf.keras.callbacks.Callback
KerasLayer = Unknown  # tf.keras.layers.Layer
KerasBackend = Unknown  # tf.keras.backend
KerasPolicy = Opaque  # a policy of mixed precision, or its name
DataAdapter = Unknown  # the reader of data in fit() of Keras 2, or one of its parts
KerasModel = Unknown  # tf.keras.Model
Metric = Unknown  # tf.keras.metrics.Metric
Initializer = Unknown  # tf.keras.initializers.Initializer or its name, or an initializer of TensorFlow 1
Regularizer = Opaque  # tf.keras.regularizers.Regularizer or its name
Constraint = Opaque  # tf.keras.constraints.Constraint or its name
Optimizer = Unknown  # tf.compat.v1.train.Optimizer or a Keras optimizer
OptimizerClass = Unknown  # its class

GradientTape = Unknown  # tf.GradientTape
Logs = Optional[Dict[str, Value]]  # what Keras gives a callback: metrics by name
Function = Callable[..., Unknown]  # a function of TensorFlow or of the script
GraphFunction = Unknown  # a function of a graph: TensorFlow's private class _DefinedFunction
TracedFunction = Unknown  # the object of tf.function, or one of its concrete functions
Module = ModuleType  # a module of TensorFlow, Keras or the vendor
Result = Unknown  # what such a function returns
JsonObject = Dict[str, Unknown]  # a part of a report

Structure = Unknown  # tensors, or values, nested in dicts, lists and tuples
Tensors = Union[Tensor, Sequence[Tensor], Dict[str, Tensor]]  # one tensor, or several
InputFn = Callable[..., Unknown]  # returns a dataset, or features and labels
ModelFn = Callable[..., Unknown]  # returns an EstimatorSpec
Text = Unknown  # str, or bytes of a binary file
OptionValue = Unknown  # bool, int or str: the value of an NPU option; or another argument of NPURunConfig


class SessionRunContext(Protocol):
    """The part of tf.compat.v1.train.SessionRunContext that hooks use."""

    session: Session
    original_args: SessionRunArgs

    def request_stop(self) -> None:
        """Stop training after this step."""


class SessionRunValues(Protocol):
    """The part of tf.compat.v1.train.SessionRunValues that hooks use."""

    results: Structure


class LossScaleManager(Protocol):
    """The part of a manager, of npu_shim or of the vendor, that loss scaling uses."""

    def get_enable_overflow_check(self) -> bool:
        """Return False if gradients that are not finite are applied, too."""

    def get_loss_scale(self) -> Tensor:
        """Return the loss scale."""

    def update_loss_scale(self, finite_grads: Tensor) -> Operation:
        """Return the op that changes the loss scale after a step whose gradients are finite, or not."""
