"""The table of all rules."""

from __future__ import annotations

import ast
import importlib
import os
import re
from typing import Any, Iterator, Pattern

from ..project.source_files import mentions_frameworks
from ..rewrite.spans import Spans
from ..semantics.model import Call
from ..syntax.expressions import last_part
from ..syntax.source import SourceError
from ..syntax.words import spread_word_pattern
from .base import HOOKS, Context, Finding, Result, Rule


class Registry:
    """All rules, with an index of the calls that each rule checks.

    Args:
        rules: the rules; by default all modules of the package ``rules``.

    Attributes:
        words_of_other_packages: the last parts of the names outside of all frameworks whose calls rules check.
    """

    def __init__(self, rules: list[Rule] | None = None) -> None:
        self.rules = load_rules() if rules is None else rules
        self._of_files = [(r, r.module.check_file) for r in self.rules if hasattr(r.module, "check_file")]
        self._last = [(r, r.module.check_last) for r in self.rules if hasattr(r.module, "check_last")]
        self._by_call: dict[str, list[Rule]] = {}
        self._by_method: dict[str, list[Rule]] = {}
        for rule in self.rules:
            for name in rule.checked_calls:
                self._by_call.setdefault(name, []).append(rule)
            for name in rule.checked_methods:
                self._by_method.setdefault(name, []).append(rule)
        self.words_of_other_packages = frozenset(
            last_part(name) for name in self._by_call if not mentions_frameworks(name.encode("ascii"))
        )

    def check_file(self, context: Context) -> Iterator[tuple[Rule, Result]]:
        """Yield the results of all rules for a file, in the order of its calls."""
        for rule, check_file in self._of_files:
            for result in check_file(context):
                yield rule, result
        strings, called = context.names.strings, context.called_names
        for call in context.names.calls:  # rules check few of them
            node, method = call.node, getattr(call.node.func, "attr", None)
            if called.get(node) in self._by_call or method in self._by_method or node in strings:
                yield from self._check_call(context, call)

    def check_last(self, context: Context, replaced: Spans) -> Iterator[tuple[Rule, Result]]:
        """Yield the results of the rules that need to know the rewrites of all others."""
        replaced = replaced.copy()  # results yielded here must not change it
        for rule, check_last in self._last:
            for result in check_last(context, replaced):
                yield rule, result

    def _check_call(self, context: Context, call: Call) -> Iterator[tuple[Rule, Result]]:
        string = context.names.strings.get(call.node)
        unplaced = string is not None and not context.source.is_position_reliable(call.node, string)
        name, method = context.called_names.get(call.node, ""), call.node.func
        if isinstance(method, ast.Attribute):
            for rule in self._by_method.get(method.attr, ()):
                if unplaced:
                    if _rule_reports_method_call(rule, context, call, method):
                        yield rule, _finding_of_call_in_fstring(call.node, f"{method.attr}()")
                    continue
                for result in rule.module.check_method(context, call, method):
                    yield rule, result
        for rule in self._by_call.get(name, ()):
            if unplaced:
                yield rule, _finding_of_call_in_fstring(call.node, name)
                continue
            for result in rule.module.check_call(context, call, name):
                yield rule, result

    def pattern_of_received_objects(self) -> Pattern[bytes]:
        """Return a pattern for files that name no framework, but may use its objects, received from other files."""
        methods = {name for rule in self.rules for name in rule.checked_methods if not name.startswith("__")}
        texts = {text for rule in self.rules for text in getattr(rule.module, "ON_OBJECTS", ())}
        methods.update(text[1:] for text in texts if text.startswith("."))
        texts = {text for text in texts if not text.startswith(".")}
        parts = [r"{}(?:{})\b".format(spread_word_pattern("."), "|".join(sorted(methods)))] if methods else []
        return re.compile("|".join(parts + sorted(map(re.escape, texts)) or [r"(?!)"]).encode("ascii"))

    def by_code(self, code: str) -> Rule | None:
        """Return the rule with a code, or None."""
        return next((rule for rule in self.rules if rule.code == code.upper()), None)


def _rule_reports_method_call(rule: Rule, context: Context, call: Call, method: ast.Attribute) -> bool:
    """Return True if a rule has something to say about a method call whose position is not known."""
    try:
        return any(True for _ in rule.module.check_method(context, call, method))
    except (SourceError, IndexError):  # it has, and reads the text to change at a position that is wrong
        return True


def _finding_of_call_in_fstring(node: ast.Call, name: str) -> Finding:
    return Finding(node, "{0} inside an f-string cannot be converted. Move it to a separate line", name)


def load_rules() -> list[Rule]:
    """Return all rules of the package ``rules``, sorted by code."""
    folder = os.path.dirname(os.path.abspath(__file__))
    rules = []
    # pkgutil would import half the library.
    for topic in sorted(os.listdir(folder)):
        if not os.path.isfile(os.path.join(folder, topic, "__init__.py")):
            continue
        for file in sorted(os.listdir(os.path.join(folder, topic))):
            name, ending = os.path.splitext(file)
            if ending != ".py" or name == "__init__":
                continue
            module: Any = importlib.import_module(f".{topic}.{name}", __package__)
            if hasattr(module, "CODE") and any(hook in vars(module) for hook in HOOKS):
                rules.append(Rule(module.CODE, (module.__doc__ or "").strip().split("\n")[0], module))
    return sorted(rules, key=lambda rule: rule.code)
