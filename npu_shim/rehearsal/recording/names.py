"""Names of tensors, variables and fetches in a recording."""

from __future__ import annotations

from typing import Iterator

from npu_shim._tensorflow.types import Fetches, Result, Value

OF_OPTIMIZER = " of optimizer "  # between a name and the number of its optimizer
OWN_WRITER = "npu_shim_own"  # attribute of a FileWriter whose summaries are not those of the script


def plain_name(value: Value) -> str:
    """Return the name of a variable (its path with Keras 3) or a tensor, without the number of the first output."""
    name = getattr(value, "path", None) or getattr(value, "name", None) or "unnamed"
    return name[:-2] if name.endswith(":0") else str(name)


def fetches_with_values(fetches: Fetches, result: Result) -> Iterator[tuple[Fetches, Value]]:
    """Yield each single fetch with its value."""
    if isinstance(fetches, dict):
        for key in fetches:
            yield from fetches_with_values(fetches[key], result[key])
    elif isinstance(fetches, (list, tuple)):
        for fetch, value in zip(fetches, result):
            yield from fetches_with_values(fetch, value)
    elif isinstance(result, tuple):  # a sparse tensor
        for part, value in zip(getattr(result, "_fields", ()), result):
            yield f"{fetch_name(fetches)} {part}", value
    else:
        yield fetches, result


def single_fetches(fetches: Fetches) -> list[Fetches]:
    """Return the single fetches of a structure."""
    return [fetch for fetch, _ in fetches_with_values(fetches, fetches)]


def fetch_name(key: Fetches) -> str:
    """Return the name of a fetch."""
    return key if isinstance(key, str) else plain_name(key)
