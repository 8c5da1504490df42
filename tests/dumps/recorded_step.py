"""Runs a sample up to its first training step, and writes what TensorFlow computes in it as a reference.

python -m tests.dumps.recorded_step SCRIPT FOLDER ARGUMENTS
"""

from __future__ import annotations

import runpy
import sys
from typing import Any, Iterator

import numpy as np
from tensorflow.python.client import session

from npu_shim.dumps import reference
from tests.dumps.written_reference import write as write_reference

_UPDATES = ("Apply", "Assign")


def main() -> None:
    """Run the sample."""
    script, folder = sys.argv[1:3]
    sys.argv[:] = [script, *sys.argv[3:]]
    run = session.BaseSession.run

    def first_step(self: Any, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        ops = below(self.graph, list(flat(fetches)))
        if not any(
            update in op.type for op in ops for update in ("ApplyAdam", "ApplyGradientDescent", "ApplyMomentum")
        ):
            return run(self, fetches, *args, **kwargs)
        tensors = [
            tensor
            for op in ops
            for tensor in op.outputs
            if op.type not in ("VariableV2", "Variable") and not op.type.startswith(_UPDATES) and has_numbers(tensor)
        ]
        arrays = run(self, [fetches, tensors], *args, **kwargs)[1]
        write_reference(folder, [(entry(tensor, script), np.asarray(array)) for tensor, array in zip(tensors, arrays)])
        raise SystemExit(0)

    session.BaseSession.run = first_step
    runpy.run_path(script, run_name="__main__")


def flat(fetches: Any) -> Iterator[Any]:
    """Yield the fetches of a run."""
    if isinstance(fetches, (list, tuple)):
        yield from (each for fetch in fetches for each in flat(fetch))
    elif isinstance(fetches, dict):
        yield from flat(list(fetches.values()))
    elif fetches is not None:
        yield fetches


def below(graph: Any, fetches: list[Any]) -> list[Any]:
    """Return the ops that fetches need, in the order in which the graph was made."""
    waiting = [graph.as_graph_element(fetch) for fetch in fetches]
    waiting, found = [getattr(each, "op", each) for each in waiting], {}
    while waiting:
        op = waiting.pop()
        if op.name not in found:
            found[op.name] = op
            waiting += [each.op for each in op.inputs] + list(op.control_inputs)
    return [op for op in graph.get_operations() if op.name in found]


def has_numbers(tensor: Any) -> bool:
    """Return True for a tensor that can be written."""
    if tensor.dtype._is_ref_dtype or not tensor.graph.is_fetchable(tensor):
        return False
    return bool(tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool)


def entry(tensor: Any, script: str) -> reference.Output:
    """Return the row of a tensor in the index of a reference."""
    lines = [f"{script.rsplit('/', 1)[-1]}:{frame[1]}" for frame in tensor.op.traceback if frame[0] == script]
    inputs = [each.name for each in tensor.op.inputs]
    return reference.Output(
        tensor.op.name, tensor.value_index, type=tensor.op.type, line=lines[-1] if lines else "", inputs=inputs
    )


if __name__ == "__main__":
    main()
