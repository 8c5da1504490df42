"""The interface of a rule.

A rule is a module of a topic package below ``rules``. Its docstring is its help, its page in the documentation and its
tests; ``CODE`` is its code; ``NEEDS`` are the settings it requires. It defines one or more of these hooks:

* ``CALLS`` (dotted names) and ``check_call(context, call, name)``: called for each call of one of these names;
* ``METHODS`` (names) and ``check_method(context, call, method)``: called for each call of an attribute of that name;
* ``check_file(context)``: called once for each file;
* ``check_last(context, replaced)``: called once for each file after all others, with the parts of the text
  (start, end) that their rewrites replace;
* ``check_text(text)``: called once for each file beside the Python files (``files.texts``), which is never changed.

``ON_OBJECTS`` lists strings. A file contains one of them if ``check_file`` acts on objects that the file only receives
from other files; strings for attributes begin with a dot. A rule that acts on names of TensorFlow needs none: a file
has no such name unless it imports TensorFlow or a module that does. A rule that acts on other names of such files lists them.

``DELIBERATE`` says, in one clause after the code, which numbers the rule changes on purpose. ``npu-shim verify`` gives
the original the same changes. ``ROUNDS`` is True if they are within its tolerance at first; then the original gets them
only if the two runs depart later.

``SHOWS`` is the mode in which ``-d auto`` converts the programs that have something for ``check_file`` of the rule.

``ONCE_A_FILE`` is True if a finding of the rule says all that others with its message in the file would say. The first
one counts the others.

Each hook yields :class:`Change` and :class:`Finding` objects and modifies nothing itself; ``check_text`` yields the
offset and the message of each finding.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

from ..files.message import Message
from ..project.context import Context
from ..rewrite.change import Change, Finding, Question, Result

__all__ = ["HOOKS", "Change", "Context", "Finding", "Message", "Question", "Result", "Rule"]
HOOKS = "check_call", "check_method", "check_file", "check_last", "check_text"  # a rule defines one or more of these


class Rule(NamedTuple):
    """A rule module with its code and title."""

    code: str
    title: str
    module: ModuleType

    @property
    def doc(self) -> str:
        """The rule's help."""
        return (self.module.__doc__ or "").strip()

    @property
    def needed_settings(self) -> dict[str, object]:
        """The settings that the rule requires."""
        return dict(getattr(self.module, "NEEDS", {}))

    @property
    def mode_shown(self) -> str:
        """The mode of ``-d auto`` for programs in which the rule acts; empty if it shows none."""
        return str(getattr(self.module, "SHOWS", ""))

    @property
    def numbers_changed_on_purpose(self) -> str:
        """The numbers that the rule changes on purpose, as a clause after its code; empty if it changes none."""
        return str(getattr(self.module, "DELIBERATE", ""))

    @property
    def only_rounds_differently(self) -> bool:
        """True if the rule only rounds differently."""
        return bool(getattr(self.module, "ROUNDS", False))

    @property
    def counts_repeated_findings(self) -> bool:
        """True if the first finding in a file counts the others with its message."""
        return bool(getattr(self.module, "ONCE_A_FILE", False))

    @property
    def checked_calls(self) -> frozenset[str]:
        """The dotted names whose calls the rule checks."""
        return frozenset(getattr(self.module, "CALLS", ()))

    @property
    def checked_methods(self) -> frozenset[str]:
        """The attribute names whose calls the rule checks."""
        return frozenset(getattr(self.module, "METHODS", ()))
