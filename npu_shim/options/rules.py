"""Rules between options that the columns ``excludes`` and ``requires`` of the rows cannot express."""

from __future__ import annotations

from typing import Callable, Mapping, NamedTuple

from npu_shim._tensorflow.types import OptionValue

# Of a condition in options.json: the value of an option, None without one, and what the condition names.
_TESTS: Mapping[str, Callable[[OptionValue, OptionValue], bool]] = {
    "in": lambda value, values: value in values,
    "not_in": lambda value, values: value not in values,
    "above": lambda value, bound: value is not None and value > bound,
    "given": lambda value, is_given: (value is not None) == is_given,
}


class Rule(NamedTuple):
    """``when`` has the conditions of options that break the rule, all of them. ``text`` is the message with the fix."""

    when: Mapping[str, Mapping[str, OptionValue]]
    text: str

    def broken(self, options: Mapping[str, OptionValue]) -> bool:
        """Return True for options that break the rule."""
        return all(
            _TESTS[test](options.get(name), argument)
            for name, tests in self.when.items()
            for test, argument in tests.items()
        )
