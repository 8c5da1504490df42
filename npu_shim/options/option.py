"""One NPU option is one row with everything that npu_shim knows about it."""

from __future__ import annotations

from typing import Mapping, NamedTuple

from npu_shim._tensorflow.types import OptionValue
from npu_shim.options.domain import BOOL, Domain, domain_of_option

ANYTHING = Domain("anything RunConfig takes", lambda v: True)
FIELDS = {"bool": "b", "int": "i", "str": "s", "argument": None}  # of the parameter_map, by type
REQUIRED: OptionValue = object()  # an argument without default
SAME: OptionValue = object()  # the argument has the name of the option

# When NPUEstimator writes an option into the parameter_map
ALWAYS = "always"  # also with its default
GIVEN = "given"  # if it is not None, and its config object is given
HELD_TOGETHER = "held together"  # if its config object is given and no field of it is None
WITH_AOE = "with aoe_mode"  # only together with aoe_mode
WITH_PROFILING = "with profiling"  # only together with profiling_mode=True; None becomes an empty string
FORCED = "forced"  # by the estimator; users have no argument
NEVER = "never"

_TYPES = {"b": bool, "i": int, "s": str}


class Option(NamedTuple):
    """A row of the table.

    Attributes:
        name: key in the parameter_map of the NpuOptimizer entry.
        field: field of the map: b, i or s (None for an argument that is not a key).
        doc: its effect, in one line.
        allowed: its Domain.
        session: default in a session (None if unset).
        estimator: default of the NPURunConfig (or config class) argument.
        argument: name of that argument; None if there is none.
        holder: the config class with the argument; None for NPURunConfig itself.
        write: the condition under which NPUEstimator writes it; see the constants above.
        numbers_too: an int is accepted and written as its decimal text.
        deprecated: the instruction for users of a deprecated option; empty if it is current.
        excludes: options that must not be given too.
        requires: options that must be given too.
        holds: name of the config class an argument is an instance of.
        content: the function of precision_files that checks the named file, if it exists on this machine.
        tf2: its path in the global options of the vendor's package for TF 2; None if it has none.
        tf2_default: its default there; SAME as in a session.
        tf2_allowed: the values that are allowed there, None for any; SAME as the values of allowed.
        tf2_deprecated: False if it is current there, though deprecated elsewhere.
        products: the Ascend cards that support it, or some of its values; empty for all.
        replacement: the option that replaces a deprecated one, None if there is none.
        refused: True if the NPU refuses other values. They are an error in a config filled by hand, else a warning.
        since: the first release of npu_shim with the option.
        cpu: kind of its effect: numeric, execution, side_output, distributed or perf_only.
    """

    name: str
    field: str | None
    doc: str
    allowed: Domain = BOOL
    session: OptionValue | None = None
    estimator: OptionValue | None = None
    argument: str | None = SAME
    holder: str | None = None
    write: str = GIVEN
    numbers_too: bool = False
    deprecated: str = ""
    excludes: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    holds: str | None = None
    content: str | None = None
    tf2: str | None = SAME
    tf2_default: OptionValue | None = SAME
    tf2_allowed: tuple[OptionValue | None, ...] | None = SAME
    tf2_deprecated: bool = True
    products: str = ""
    replacement: str | None = None
    refused: bool = False
    since: str = "1.0.0"
    cpu: str = "perf_only"

    @property
    def type(self) -> type | None:
        """bool, int or str; None for an argument that is not a key."""
        return _TYPES.get(self.field or "")

    @property
    def modes(self) -> tuple[str, ...]:
        """The places that accept it: session (also for Keras), estimator, tf2."""
        known = {"session": self.field is not None, "estimator": self.arg is not None, "tf2": self.tf2_path is not None}
        return tuple(name for name, there in known.items() if there)

    @property
    def tf2_path(self) -> str | None:
        """Its path in the global options for TF 2, None if it has none."""
        return self.name if self.tf2 is SAME else self.tf2

    @property
    def default_for_tf2(self) -> OptionValue | None:
        """Its default in the global options for TF 2."""
        return self.session if self.tf2_default is SAME else self.tf2_default

    @property
    def values_for_tf2(self) -> tuple[OptionValue | None, ...] | None:
        """The values allowed in the global options for TF 2, None for any."""
        return self.allowed.values or None if self.tf2_allowed is SAME else self.tf2_allowed

    @property
    def arg(self) -> str | None:
        """Name of the constructor argument, None if there is none."""
        return self.name if self.argument is SAME else self.argument


def option_from_fields(fields: Mapping[str, OptionValue]) -> Option:
    """Return the row of an object of options.json.

    Args:
        fields: those of Option that differ from its defaults, and

            * type: "bool", "int" or "str", or "argument" for a constructor argument that is not a key;
            * allowed: see domain.FORMS;
            * default: in a session and of the argument, for those that are not given themselves;
            * required: True for an argument without default.
    """
    given: dict[str, OptionValue] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }
    default = given.pop("default", None)
    if given.pop("required", False):
        given["estimator"] = REQUIRED
    kind = given.pop("type")
    base: dict[str, OptionValue] = {"session": default, "estimator": default}
    if kind == "argument":  # of those only config classes also exist for TF 2
        base = {"estimator": default, "write": NEVER, "tf2": SAME if "holds" in given else None}
    allowed = domain_of_option(given["allowed"]) if "allowed" in given else BOOL if kind == "bool" else ANYTHING
    return Option(**{**base, **given, "field": FIELDS[kind], "allowed": allowed})
