"""Names for TensorFlow's types in annotations.

TensorFlow has no type information in some of the supported versions, so a type checker sees Any behind each name.
A reader sees which object is meant. Import these names under TYPE_CHECKING only.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence, Union

Tensor = Any  # tf.Tensor
EagerTensor = Any  # tf.Tensor in eager mode
Value = Any  # an array or number, as a session or a dataset returns it
Operation = Any  # tf.Operation
Gradient = Any  # tf.Tensor, tf.IndexedSlices or None
Variable = Any  # tf.Variable, or a ref variable of TensorFlow 1
Graph = Any  # tf.Graph
DType = Any  # tf.DType, or what tf.as_dtype takes
TensorShape = Any  # tf.TensorShape, or what it is made of
Dataset = Any  # tf.data.Dataset, of TensorFlow 1 or 2
Queue = Any  # tf.queue.QueueBase
RNNCell = Any  # tf.compat.v1.nn.rnn_cell.RNNCell
VariableScope = Any  # tf.compat.v1.VariableScope, or its name
Session = Any  # tf.compat.v1.Session
FeedDict = Dict[Any, Any]  # tensor, or its name, to value
Fetches = Any  # what session.run takes: tensors, ops, names, nested

GraphDef = Any  # tf.compat.v1.GraphDef
ConfigProto = Any  # tf.compat.v1.ConfigProto
RewriterConfig = Any  # its field graph_options.rewrite_options
CustomOptimizer = Any  # an entry of RewriterConfig.custom_optimizers
Message = Any  # another protobuf message

RunConfig = Any  # tf.estimator.RunConfig
Estimator = Any  # tf.estimator.Estimator
EstimatorClass = Any  # its class
EstimatorModule = Any  # tf.estimator; None where TensorFlow has none
EstimatorSpec = Any  # tf.estimator.EstimatorSpec
SessionRunHook = Any  # tf.compat.v1.train.SessionRunHook
SessionRunContext = Any  # tf.compat.v1.train.SessionRunContext
SessionRunArgs = Any  # tf.compat.v1.train.SessionRunArgs
SessionRunValues = Any  # tf.compat.v1.train.SessionRunValues
Scaffold = Any  # tf.compat.v1.train.Scaffold
Saver = Any  # tf.compat.v1.train.Saver
CheckpointSaverListener = Any  # tf.compat.v1.train.CheckpointSaverListener
EventWriter = Any  # tf.compat.v1.summary.FileWriter
WarmStartSettings = Any  # tf.estimator.WarmStartSettings
InputContext = Any  # tf.distribute.InputContext
Strategy = Any  # tf.distribute.Strategy
ReduceOp = Any  # tf.distribute.ReduceOp
ClusterResolver = Any  # tf.distribute.cluster_resolver.ClusterResolver
StrategyExtended = Any  # its attribute extended
LossScaleManager = Any  # FixedLossScaleManager, ExponentialUpdateLossScaleManager or the vendor's
KerasCallback = Any  # tf.keras.callbacks.Callback
KerasLayer = Any  # tf.keras.layers.Layer
KerasModel = Any  # tf.keras.Model
Initializer = Any  # tf.keras.initializers.Initializer or its name, or an initializer of TensorFlow 1
Regularizer = Any  # tf.keras.regularizers.Regularizer or its name
Constraint = Any  # tf.keras.constraints.Constraint or its name
Optimizer = Any  # tf.compat.v1.train.Optimizer or a Keras optimizer
OptimizerClass = Any  # its class

GradientTape = Any  # tf.GradientTape
DatasetIterator = Any  # tf.data.Iterator
Logs = Any  # what Keras gives a callback: metrics by name, or None
Function = Callable[..., Any]  # a function of TensorFlow or of the script
Result = Any  # what such a function returns
JsonObject = Dict[str, Any]  # a part of a report

Structure = Any  # tensors, or values, nested in dicts, lists and tuples
Tensors = Union[Tensor, Sequence[Any], Dict[str, Any]]  # one tensor, or several
InputFn = Callable[..., Any]  # returns a dataset, or features and labels
ModelFn = Callable[..., Any]  # returns an EstimatorSpec
OptionValue = Any  # bool, int or str: the value of an NPU option; or another argument of NPURunConfig
