"""Reads of a dataset: for what, by which function, and the words by which they are known."""

from __future__ import annotations

import ast
from typing import NamedTuple

from ..semantics.module_index import Names
from ..semantics.tf_types import TRAINING_METHODS
from .phase_evidence import TAKERS
from .phase_words import PREPARE, TRAIN, phase_in

FLOWS_ON = frozenset(
    """as_numpy_iterator choose_from_datasets concatenate drop_in_training enforce_static_batch enumerate
experimental_distribute_dataset islice iter padded_batches prefetch_to_device reversed sample_from_datasets
shard_batches tqdm tuple zip""".split()
)
HARMLESS = frozenset(
    """cardinality debug get_legacy_output_shapes get_legacy_output_types get_output_shapes get_output_types
get_structure getsizeof hasattr id info isinstance len options print repr str type warning""".split()
)
ITERATOR = "make_initializable_iterator"
SHAPES = frozenset({"element_spec", "output_classes", "output_shapes", "output_types"})
READS = frozenset({"list", "reduce", "set", "sum"})  # on the host


class Use(NamedTuple):
    """A read of a dataset.

    Attributes:
        phase: what it is read for.
        node: the expression that is read.
        names: the names of its module.
        by: the function that reads it, or the loop.
        sites: the calls through whose results the dataset came. Each makes one of its own.
    """

    phase: str
    node: ast.AST
    names: Names
    by: str
    sites: tuple[ast.AST, ...]


class Shared(NamedTuple):
    """Two reads of one dataset: for training, and for something else."""

    trains: Use
    other: Use


class Uses(NamedTuple):
    """The reads of a dataset; ``complete`` if no other is possible, and ``is_unread`` if none is.

    ``undecided`` is the name of a function that trains on it for some arguments only, if a call does not show which.
    ``shapes_iterators`` is true if an iterator that may read other datasets, too, has its shapes. ``initialized`` has
    the arguments of ``make_initializer`` through which all of it is read; () if something else reads it.
    """

    reads: tuple[Use, ...]
    complete: bool
    undecided: str = ""
    shapes_iterators: bool = False
    initialized: tuple[ast.AST, ...] = ()
    is_unread: bool = False

    @property
    def phases(self) -> frozenset[str]:
        """Return the phases for which the dataset is read."""
        return frozenset(use.phase for use in self.reads)

    @property
    def training_and_other_read(self) -> Shared | None:
        """Return a read for training and one for something else, of one dataset, if there are both."""
        for trains in self.reads:
            for use in self.reads:
                if trains.phase == TRAIN != use.phase and use.sites == trains.sites:
                    return Shared(trains, use)
        return None


def phase_of_argument(call: ast.Call, word: str, argument: ast.AST) -> str | None:
    """Return the phase of an argument by the name of the function, or of the keyword."""
    keyword = argument.arg or "" if isinstance(argument, ast.keyword) else ""
    named = phase_in(keyword)
    if named:
        return named
    if word in TRAINING_METHODS:
        return TRAIN if call.args[:1] == [argument] or keyword in ("x", "generator") else None
    if word in ("adapt", "save") or "vocab" in word:
        return PREPARE
    return TAKERS.get(word) or phase_in(word)
