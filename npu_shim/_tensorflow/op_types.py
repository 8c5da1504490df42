"""Types of operators and datasets of TensorFlow, which several rooms look for."""

from __future__ import annotations

VARIABLES = frozenset({"VarHandleOp", "VariableV2", "Variable"})
SOURCES = VARIABLES | {"Const", "Placeholder", "PlaceholderWithDefault"}  # they compute nothing
REDUCTIONS = frozenset({"Sum", "Mean", "Max", "Min", "Prod"})
LOOPS = frozenset({"While", "StatelessWhile"})
PYTHON_CALLS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
BATCHING_DATASETS = frozenset({"Batch", "PaddedBatch", "ParallelBatch", "MapAndBatch"})
