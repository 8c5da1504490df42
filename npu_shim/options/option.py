"""One NPU option = one row: everything npu_shim knows of it, said once."""

from __future__ import annotations

from typing import Any, NamedTuple

from npu_shim.options.domain import BOOL, Domain

REQUIRED = object()  # an argument without default
SAME = object()  # "the argument is called as the option"

# When NPUEstimator writes an option into the parameter_map
ALWAYS = "always"  # with its default too
GIVEN = "given"  # when not None
HELD = "held"  # when its config object is given, and not None
HELD_TOGETHER = "held together"  # when its config object is given and no field of it is None
WITH_AOE = "with aoe_mode"  # only next to aoe_mode
WITH_PROFILING = "with profiling"  # only next to profiling_mode=True, None as an empty text
FORCED = "forced"  # by the estimator itself, users have no argument
NEVER = "never"

_TYPES = {"b": bool, "i": int, "s": str}


class Option(NamedTuple):
    """A row of the table.

    Attributes:
        name: key in the parameter_map of the NpuOptimizer entry.
        field: the map's field: b, i or s (None: an argument that is not a key).
        doc: what it does, in one line.
        allowed: its Domain.
        session: default of a session that does not set it (None: unset).
        estimator: default of the NPURunConfig (or config class) argument.
        argument: that argument's name; None when there is none.
        holder: the config class that has the argument; None for NPURunConfig itself.
        write: when NPUEstimator writes it; see the constants above.
        numbers_too: an int is accepted and written as its decimal text.
        deprecated: says what to do instead; empty while it is current.
        excludes: options that must not be given at the same time.
        requires: options that must be given as well.
        holds: name of the config class an argument is an instance of.
        content: the function of precision_files that checks the file a value names, where it is on this machine.
        tf2: its path in the global options of the vendor's package for TF 2; None where it has none there.
        tf2_default: its default there; SAME as in a session.
        products: the cards that have it, or some of its values; empty where all have.
        replacement: the option to use instead of a deprecated one, where there is one.
        refused: the card refuses other values, so that a config filled by hand with one is an error; else a warning.
        since: the release of npu_shim that took it.
        cpu: what it means on the CPU: numeric, execution, side_output, distributed or perf_only.
    """

    name: str
    field: str | None
    doc: str
    allowed: Domain = BOOL
    session: Any = None
    estimator: Any = None
    argument: Any = SAME
    holder: str | None = None
    write: str = GIVEN
    numbers_too: bool = False
    deprecated: str = ""
    excludes: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    holds: str | None = None
    content: str | None = None
    tf2: Any = SAME
    tf2_default: Any = SAME
    products: str = ""
    replacement: str | None = None
    refused: bool = False
    since: str = "0.1.0"
    cpu: str = "perf_only"

    @property
    def type(self) -> type | None:
        """bool, int or str; None for an argument that is no key."""
        return _TYPES.get(self.field or "")

    @property
    def modes(self) -> tuple[str, ...]:
        """Where it can be given: session (and Keras, which has the session's), estimator, tf2."""
        known = {"session": self.field is not None, "estimator": self.arg is not None, "tf2": self.tf2_path is not None}
        return tuple(name for name, there in known.items() if there)

    @property
    def tf2_path(self) -> str | None:
        """Its path in the global options for TF 2, None when it has none there."""
        return self.name if self.tf2 is SAME else self.tf2

    @property
    def arg(self) -> str | None:
        """Name of the constructor argument, None when there is none."""
        return self.name if self.argument is SAME else self.argument


def flag(name: str, doc: str, default: bool | None = None, **rest: Any) -> Option:
    """A row of type bool."""
    rest.setdefault("session", default)
    rest.setdefault("estimator", default)
    return Option(name, "b", doc, BOOL, **rest)


def number(name: str, doc: str, allowed: Domain, default: int | None = None, **rest: Any) -> Option:
    """A row of type int."""
    rest.setdefault("session", default)
    rest.setdefault("estimator", default)
    return Option(name, "i", doc, allowed, **rest)


def text(name: str, doc: str, allowed: Domain, default: str | None = None, **rest: Any) -> Option:
    """A row of type str."""
    rest.setdefault("session", default)
    rest.setdefault("estimator", default)
    return Option(name, "s", doc, allowed, **rest)


def argument(name: str, doc: str, default: Any = None, **rest: Any) -> Option:
    """A row for a constructor argument that is no key of the parameter_map; only config classes go to TF 2 as well."""
    rest.setdefault("tf2", SAME if "holds" in rest else None)
    return Option(
        name, None, doc, Domain("anything RunConfig takes", lambda v: True), estimator=default, write=NEVER, **rest
    )
