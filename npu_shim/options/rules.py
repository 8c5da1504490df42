"""Rules between options that the columns ``excludes`` and ``requires`` of the rows cannot express."""

from __future__ import annotations

import re
from typing import Callable, Mapping, NamedTuple

from npu_shim._tensorflow.types import OptionValue


def _is_unsorted(shapes: OptionValue, _: OptionValue) -> bool:
    names = [shape.rpartition(":")[0].strip() for shape in str(shapes or "").split(";")]
    return names != sorted(names)


def _differ_from_shapes(profiles: OptionValue, shapes: OptionValue) -> bool:
    """Return True if profiles are less than two, or have other dimensions than the shapes leave open."""
    if profiles is None or shapes is None:
        return False
    open_dimensions = sum(size.strip() == "-1" for size in re.split("[:,;]", str(shapes)))
    sizes = [profile.split(",") for profile in str(profiles).split(";")]
    return len(sizes) < 2 or any(len(profile) != open_dimensions for profile in sizes)


# Of a condition in options.json: the value of an option, None without one, and what the condition names.
_TESTS: Mapping[str, Callable[[OptionValue, OptionValue], bool]] = {
    "in": lambda value, values: value in values,
    "not_in": lambda value, values: value not in values,
    "above": lambda value, bound: value is not None and value > bound,
    "given": lambda value, is_given: (value is not None) == is_given,
    "unsorted": _is_unsorted,
}
# The condition names another option: its value is the second argument.
_TESTS_OF_TWO: Mapping[str, Callable[[OptionValue, OptionValue], bool]] = {
    "differ_from_shapes": _differ_from_shapes,
    "milliseconds_within": lambda value, seconds: value is not None and 0 <= value <= 1000 * (seconds or -1),
}


class Rule(NamedTuple):
    """``when`` has the conditions of options that break the rule, all of them. ``text`` is the message with the fix."""

    when: Mapping[str, Mapping[str, OptionValue]]
    text: str

    def is_broken(self, options: Mapping[str, OptionValue]) -> bool:
        """Return True for options that break the rule."""
        return all(
            _TESTS[test](options.get(name), argument)
            if test in _TESTS
            else _TESTS_OF_TWO[test](options.get(name), options.get(argument))
            for name, tests in self.when.items()
            for test, argument in tests.items()
        )
