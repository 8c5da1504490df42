"""The edits and diagnostics of one script: all rules, their conflicts, and the imports of what they write."""

from __future__ import annotations

import ast
from collections import Counter
from itertools import chain
from typing import Iterator, NamedTuple, Pattern

from ..analysis.keras_backends import has_other_backend
from ..analysis.keras_package import imports_keras
from ..analysis.tensorflow_version import is_graph_program, is_tf2_program, kind_of_file_on_cpu
from ..files.message import Message
from ..project.context import place_of
from ..project.project import Project
from ..rewrite.npu_imports import import_edits
from ..rewrite.spans import Spans
from ..rules.base import Change, Context, Finding, Result, Rule
from ..rules.compat_v1.lift_bindings import edit_after_lifting
from ..rules.compat_v1.lift_plan import MOVING
from ..rules.data import loss_scale
from ..rules.keras import keras_backend
from ..rules.registry import Registry
from ..rules.session import session
from ..rules.tf_strategy import strategy_not_converted
from ..semantics.module_index import Module
from ..syntax.source import Edit, Source
from ..syntax.suppressions import is_suppressed_at, is_suppressed_by_line
from .api_usage import Said, call_fates, calls_with_places, count_outcomes
from .conflicts import change_or_finding
from .distributed_modes import AUTO, STRATEGY, DistributedModes
from .results import CHANGE, FINDING, UNREACHED, ApiCall, Asked, Calls, Diagnostic, sorted_by_place
from .settings import Settings


class Plan(NamedTuple):
    """The edits of a script, and the report on it."""

    source: Source
    edits: tuple[Edit, ...]
    diagnostics: tuple[Diagnostic, ...]
    calls: Calls
    listed: tuple[ApiCall, ...]
    version: str
    on_cpu: str
    asked: tuple[Asked, ...]


class _ModeRules:
    """The rules that act in a mode of distributed training.

    Attributes:
        mode: ``horovod``, ``tf_strategy``, or the empty string.
        registry: the rules.
        once_a_file: the codes of those whose first finding in a file counts the others with its message.
        of_backends: the only rule in programs that run without TensorFlow.
        on_objects: what a file contains that names no framework and has something for the rules; None for any file.
    """

    def __init__(self, settings: Settings, mode: str) -> None:
        self.mode = mode
        settings = settings._replace(distributed=mode)
        self.registry = Registry(
            [r for r in Registry().rules if settings.enabled(r.code) and _settings_match(settings, r.needed_settings)]
        )
        self.once_a_file = frozenset(rule.code for rule in self.registry.rules if rule.counts_repeated_findings)
        self.of_backends = Registry([r for r in self.registry.rules if r.code == keras_backend.CODE])
        # What becomes of replicas is followed through objects of every kind.
        self.on_objects: Pattern[bytes] | None = (
            None if mode == STRATEGY else self.registry.pattern_of_received_objects()
        )


class Planner:
    """The rules that act, with their settings.

    Args:
        settings: which rules act.
        project: the files of the run.
        list_calls: list the TensorFlow calls in the plans, for a report; plans always have their counts.
    """

    def __init__(self, settings: Settings, project: Project, list_calls: bool) -> None:
        self._settings = settings
        self._project = project
        self._list_calls = list_calls
        self._by_mode: dict[str, _ModeRules] = {}
        self._modes: DistributedModes | None = None
        if settings.distributed == AUTO:
            in_no_mode = self._rules_in("")
            self._modes = DistributedModes(
                project, Registry().rules, lambda module: self._make_context_of_module(module, in_no_mode, None)
            )
        self._rules_in(self._first_mode)

    def concerns(self, raw: bytes, path: str) -> bool:
        """Return True if a rule may act on a file with these bytes at this path."""
        return any(
            self._project.may_concern_rules(raw, path, self._rules_in(mode).on_objects)
            for mode in self._modes_of(raw, path)
        )

    def findings_in_text(self, raw: bytes) -> tuple[Diagnostic, ...]:
        """Return the findings on a file beside the Python files."""
        text, diagnostics = raw.decode("utf-8", "replace"), []
        for rule in self._rules_in(self._first_mode).registry.rules:
            for offset, message in rule.module.check_text(text) if hasattr(rule.module, "check_text") else ():
                line, col = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
                if not is_suppressed_by_line(text.split("\n")[line - 1], rule.code):
                    diagnostics.append(Diagnostic(line, col, rule.code, FINDING, message))
        return sorted_by_place(diagnostics)

    def plan(self, raw: bytes, path: str) -> Plan:
        """Run all rules over a script.

        Raises:
            SourceError: the bytes are not Python 3.
        """
        modes = self._modes_of(raw, path)
        plan = self._plan_in(modes[0], raw, path)
        code = strategy_not_converted.CODE
        if len(modes) > 1 and self._settings.enabled(code) and plan.edits != self._plan_in(modes[1], raw, path).edits:
            kind = FINDING if self._modes is None or self._modes.may_have_strategy() else UNREACHED
            both = Diagnostic(1, 1, code, kind, strategy_not_converted.OF_BOTH)
            return plan._replace(diagnostics=sorted_by_place([*plan.diagnostics, both]))
        return plan

    @property
    def _first_mode(self) -> str:
        return "" if self._modes else self._settings.distributed

    def _modes_of(self, raw: bytes, path: str) -> tuple[str, ...]:
        """Return the modes in which a file trains, Horovod first, or that of no mode."""
        if self._modes is None:
            return (self._settings.distributed,)
        return tuple(sorted(self._modes.modes_of(raw, path))) or ("",)

    def _rules_in(self, mode: str) -> _ModeRules:
        if mode not in self._by_mode:
            self._by_mode[mode] = _ModeRules(self._settings, mode)
        return self._by_mode[mode]

    def _plan_in(self, mode: str, raw: bytes, path: str) -> Plan:
        rules = self._rules_in(mode)
        context = self._make_context(raw, path, rules)
        asked: dict[Asked, None] = {}
        changes, diagnostics, said = self._run_rules(context, rules, asked)
        edits: list[Edit] = []
        if changes:
            edits = import_edits(context.source, context.names, changes)
            edits += [
                edit_after_lifting(context.names, edit, change.node) for change in changes for edit in change.edits
            ]
        outcomes = list(call_fates(context, said))
        listed = calls_with_places(context, outcomes) if self._list_calls else ()
        return Plan(
            context.source,
            tuple(edits),
            _without_repeats(rules, sorted_by_place(diagnostics)),
            count_outcomes(outcomes),
            tuple(listed),
            _tensorflow_version_of(context) if listed else "",
            kind_of_file_on_cpu(context) if outcomes else "",
            tuple(asked),
        )

    def _make_context(self, raw: bytes, path: str, rules: _ModeRules) -> Context:
        self._project.free_dropped_modules()
        module = self._project.understand(raw, path)
        words = rules.registry.words_of_other_packages if self._project.only_uses_passed_objects(raw, path) else None
        context = self._make_context_of_module(module, rules, words)
        if "keras" in module.source.text and imports_keras(module.names) and is_graph_program(context):
            context = self._make_context_of_module(self._project.with_keras_apart(module), rules, words)
        return context

    def _make_context_of_module(self, module: Module, rules: _ModeRules, words: frozenset[str] | None) -> Context:
        settings = self._settings
        moves = settings.compat_v1 and settings.enabled(MOVING)
        return Context(
            module,
            distributed=rules.mode,
            compat_v1=settings.compat_v1,
            main=settings.main,
            moves_contrib=moves,
            moves_precision=settings.enabled(session.CODE) and settings.enabled(loss_scale.CODE),
            tf=settings.tf_files.version_of(module.path) or settings.tf,
            words=words,
            program_facts=settings.facts,
            no_facts_for=_codes_without_facts(settings, module.path),
        )

    def _run_rules(
        self, context: Context, rules: _ModeRules, asked_expressions: dict[Asked, None]
    ) -> tuple[list[Change], list[Diagnostic], Said]:
        changes: list[Change] = []
        diagnostics: list[Diagnostic] = []
        seen: set[tuple[ast.AST, Diagnostic]] = set()
        said: Said = {}
        replaced = Spans()
        registry = rules.of_backends if has_other_backend(context.names) else rules.registry
        for rule, result in chain(registry.check_file(context), registry.check_last(context, replaced)):
            node = result.node
            # A finding inside an f-string is seen at the f-string, whose place is always known.
            result = result._replace(node=context.names.strings.get(result.node, result.node))
            if is_suppressed_at(context.source, result.node, rule.code):
                continue
            if isinstance(result, Change):
                result = change_or_finding(context, result, replaced)
            if isinstance(result, Change):
                changes.append(result)
                for edit in result.edits:
                    replaced.add(edit.start, edit.end)
            else:
                asked_expressions.update(dict.fromkeys(_asked_expressions(context, result)))
            diagnostic = _diagnostic_of_result(context, rule, result)
            if isinstance(result, Change) or (node, diagnostic) not in seen:  # each call that freezes a graph sees it
                diagnostics.append(diagnostic)
            seen.add((node, diagnostic))
            said.setdefault(node, set()).add((CHANGE if isinstance(result, Change) else FINDING, rule.code))
        return changes, diagnostics, said


def _without_repeats(rules: _ModeRules, diagnostics: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """Return diagnostics, with one finding for those that say the same in a file, which counts the others."""
    once = rules.once_a_file
    repeated = Counter(d[2:5] for d in diagnostics if d.kind != CHANGE and d.code in once)
    kept = []
    for diagnostic in diagnostics:
        others = repeated.pop(diagnostic[2:5], 0) - 1 if diagnostic.code in once else 0
        if others > 0:
            diagnostic = diagnostic._replace(
                message=Message("{0} (and {1} more in this file)", diagnostic.message, others)
            )
        if others >= 0 or diagnostic.kind == CHANGE:
            kept.append(diagnostic)
    return tuple(kept)


def _tensorflow_version_of(context: Context) -> str:
    """Return the version of TensorFlow that the programs of a file speak; "" if they do not show it."""
    return "2" if is_tf2_program(context) else "1" if is_graph_program(context) else ""


def _settings_match(settings: Settings, needs: dict[str, object]) -> bool:
    return all(getattr(settings, name) == value for name, value in needs.items())


def _diagnostic_of_result(context: Context, rule: Rule, result: Result) -> Diagnostic:
    line, col = context.source.line_col_of_node(result.node)
    if isinstance(result, Change):
        message, runs = result.message, result.runs
        if runs is not None:
            message = Message("{0} (seen in one run)" if runs == 1 else "{0} (seen in {1} runs)", message, runs)
        return Diagnostic(line, col, rule.code, CHANGE, message, runs=runs)
    runs = context.runs_at(line)
    if result.unused:
        runs = 0
    return Diagnostic(line, col, rule.code, UNREACHED if runs == 0 else FINDING, result.message, runs=runs)


def _asked_expressions(context: Context, finding: Finding) -> Iterator[Asked]:
    """Yield the expressions that a run should watch; none inside of f-strings, where text cannot be added."""
    source = context.source
    for kind, node, code in finding.asks:
        if node not in context.names.strings:
            yield Asked(source.start(node), source.end(node), place_of(source, kind, node), code)


def _codes_without_facts(settings: Settings, path: str) -> tuple[str, ...]:
    """Return ``settings.no_facts_for`` for one file: ``CODE``, and ``CODE:LINE`` for ``CODE:PATH:LINE``."""
    codes = []
    for entry in settings.no_facts_for:
        code, _, place = entry.partition(":")
        of_file, _, line = place.rpartition(":")
        if not place:
            codes.append(code)
        elif settings.facts is not None and settings.facts.relative_path_of(path) == of_file:
            codes.append(f"{code}:{line}")
    return tuple(codes)
