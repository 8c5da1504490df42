"""Whether a piece of code feeds training, evaluation or prediction.

Evidence, the nearest first: the tests around it (``if mode == tf.estimator.ModeKeys.TRAIN``,
``if is_training``), the name it is assigned to, the name of the function it stands in, how that
function is handed to an Estimator, and last what the whole file does. What stays open is said to be
open.
"""
from __future__ import annotations

import ast
import re
from typing import NamedTuple, Optional, Set

from .names import Names
from .scopes import Where
from .signatures import constant

TRAIN, EVAL, PREDICT = 'training', 'evaluation', 'prediction'
_WORDS = {TRAIN: {'train', 'training', 'trn', 'trainer'},
          EVAL: {'eval', 'evaluate', 'evaluation', 'evaluating', 'valid', 'validation', 'validate',
                 'val', 'test', 'testing', 'tst', 'dev'},
          PREDICT: {'predict', 'prediction', 'predicting', 'predictions', 'infer', 'inference',
                    'serving', 'serve'}}
_MODE_KEYS = {'TRAIN': TRAIN, 'EVAL': EVAL, 'PREDICT': PREDICT, 'INFER': PREDICT}
_TAKERS = {'train': TRAIN, 'TrainSpec': TRAIN, 'fit': TRAIN, 'evaluate': EVAL, 'EvalSpec': EVAL,
           'predict': PREDICT}
_TRAINS = re.compile(r'\.(minimize|apply_gradients|fit|fit_generator|train|train_and_evaluate)\s*\(')
_OTHER_PHASE = re.compile(r'eval|valid|test|predict|infer', re.IGNORECASE)


class Phase(NamedTuple):
    """What some code feeds, or None where it is open, and the evidence in words."""
    name: Optional[str]
    because: str


def phase_of(node: ast.AST, where: Where, names: Names, text: str) -> Phase:
    """The phase that the code at a node feeds.

    Args:
        node: an expression.
        where: its place.
        names: the names of the module.
        text: the module's text.
    """
    child: ast.AST = node
    function: Optional[ast.AST] = None
    for parent in names.ancestors(node):
        found: Set[str] = set()
        because = ''
        if isinstance(parent, (ast.If, ast.IfExp)):
            found, because = _tested(parent, child), 'the test around it'
        elif isinstance(parent, (ast.Assign, ast.AnnAssign)):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            for target in targets:
                found |= _named(getattr(target, 'id', getattr(target, 'attr', '')))
            because = 'the name it is assigned to'
        elif isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found, because = _named(parent.name), 'the name %s' % parent.name
            if len(found) != 1 and not isinstance(parent, ast.ClassDef):
                function = function or parent
                found, because = _taken(parent.name, names), 'what %s is given to' % parent.name
        elif isinstance(parent, ast.Call) and child is not parent.func:
            taker = getattr(parent.func, 'attr', getattr(parent.func, 'id', ''))
            found = {_TAKERS[taker]} if taker in _TAKERS else set()
            because = 'the call of %s' % taker
        elif isinstance(parent, ast.keyword):
            found, because = _named(parent.arg or ''), 'the argument %s' % parent.arg
        if len(found) == 1:
            return Phase(found.pop(), because)
        child = parent
    if function is not None and mode_parameter(function):
        return Phase(None, 'its function is called for several')
    if _TRAINS.search(text) and not _OTHER_PHASE.search(text):
        return Phase(TRAIN, 'the file, which only trains')
    return Phase(None, 'nothing around it tells')


def mode_parameter(function: ast.AST) -> Optional[str]:
    """The parameter by which a function is told whether it trains, if it has one by name."""
    arguments = getattr(function, 'args', None)
    if not isinstance(arguments, ast.arguments):
        return None
    for arg in arguments.args + arguments.kwonlyargs:
        if arg.arg in ('is_training', 'training', 'is_train', 'train', 'mode'):
            return arg.arg
    return None


def _named(name: str) -> Set[str]:
    words = set(re.findall(r'[a-z]+', re.sub(r'([a-z])([A-Z])', r'\1_\2', name).lower()))
    return {phase for phase, those in _WORDS.items() if words & those}


def _tested(parent: ast.AST, child: ast.AST) -> Set[str]:
    body = parent.body if isinstance(parent.body, list) else [parent.body]  # type: ignore
    orelse = parent.orelse if isinstance(parent.orelse, list) else [parent.orelse]  # type: ignore
    found = _meaning(parent.test)  # type: ignore[attr-defined]
    if found is None:
        return set()
    if any(child is b for b in body):
        return {found}
    if any(child is b for b in orelse):
        return {EVAL} if found == TRAIN else set()
    return set()


def _meaning(test: ast.expr) -> Optional[str]:
    """The phase in which a test holds."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(
            test.ops[0], (ast.Eq, ast.Is)):
        for side in (test.left, test.comparators[0]):
            if isinstance(side, ast.Attribute) and side.attr in _MODE_KEYS:
                return _MODE_KEYS[side.attr]
            value = constant(side)
            if value and isinstance(value[0], str):
                found = _named(value[0])
                return found.pop() if len(found) == 1 else None
        return None
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        meanings = {_meaning(v) for v in test.values} - {None}
        return meanings.pop() if len(meanings) == 1 else None
    if isinstance(test, (ast.Name, ast.Attribute)):
        name = test.id if isinstance(test, ast.Name) else test.attr
        found = _named(name)
        return found.pop() if len(found) == 1 else None
    return None


def _taken(name: str, names: Names) -> Set[str]:
    """The phases of the calls that are handed a function: train(input_fn=f), EvalSpec(lambda: f())."""
    found: Set[str] = set()
    for call, _ in names.calls:
        taker = getattr(call.func, 'attr', getattr(call.func, 'id', ''))
        if taker in _TAKERS:
            values = call.args + [k.value for k in call.keywords]
            if any(isinstance(n, ast.Name) and n.id == name for v in values for n in ast.walk(v)):
                found.add(_TAKERS[taker])
    return found
