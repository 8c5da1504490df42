"""How calls of tf.contrib change where the function takes other arguments in its new home."""
from __future__ import annotations

import ast
from typing import Callable, Dict, List, Optional

from .homes import Home
from ..edits import keyword_start, name_argument, rename_keyword
from ..removing import remove_keywords
from ..signatures import bind, constant, is_none
from ..source import Edit, Source

_MODES = {'FAN_IN': 'fan_in', 'FAN_OUT': 'fan_out', 'FAN_AVG': 'fan_avg'}
# What needs no parentheses as a factor.
_FACTORS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)


def call_edits(source: Source, call: ast.Call, home: Home) -> Optional[List[Edit]]:
    """The edits that give a call the arguments of the function's new home; None where that cannot be done.

    Args:
        source: the file.
        call: of a function of tf.contrib.
        home: where that lives.
    """
    if home.is_plain:
        return []
    if home.special:
        return _SPECIAL[home.special](source, call, home)
    bound = bind(call, home.before)
    if bound.hidden or bound.unknown:
        return None
    renamed = dict(home.renamed)
    edits: List[Optional[Edit]] = []
    named = False
    for index, (parameter, value) in enumerate(zip(bound.positional, call.args)):
        target = renamed.get(parameter, parameter)
        if target not in home.after:
            return None
        named = named or home.after.index(target) != index
        if named:
            edits.append(name_argument(source, call, value, target))
    gone = {keyword for name, keyword in bound.keywords.items() if renamed.get(name, name) not in home.after}
    if any(not is_none(keyword.value) for keyword in gone):
        return None
    removed = remove_keywords(source, call, gone) if gone else []
    edits += [rename_keyword(source, keyword, renamed[name]) for name, keyword in bound.keywords.items()
              if name in renamed and keyword not in gone]
    found = [edit for edit in edits if edit is not None]
    return found + removed if removed is not None and len(found) == len(edits) else None


def _xavier(source: Source, call: ast.Call, _: Home) -> Optional[List[Edit]]:
    """Without ``uniform``, which is the function itself now."""
    bound = bind(call, ('uniform', 'seed', 'dtype'))
    uniform = bound.args.get('uniform')
    if bound.hidden or bound.unknown or uniform is not None and constant(uniform) != (True,):
        return None
    if 'uniform' in bound.keywords:
        return remove_keywords(source, call, {bound.keywords['uniform']})
    if uniform is None:
        return []
    end = source.skip_trivia(source.end(uniform))
    if source.text[end] == ',':
        end = source.skip_trivia(end + 1)
    elif end != source.end(call) - 1:
        return None
    return [Edit(source.start(uniform), end, '')]


def _variance_scaling(source: Source, call: ast.Call, _: Home) -> Optional[List[Edit]]:
    """With its arguments by name; only the uniform one draws the same numbers."""
    bound = bind(call, ('factor', 'mode', 'uniform', 'seed', 'dtype'))
    mode = constant(bound.args['mode']) if 'mode' in bound.args else ('FAN_IN',)
    if bound.hidden or bound.unknown or constant(bound.args.get('uniform')) != (True,) or not mode or \
            mode[0] not in _MODES:
        return None
    factor = source.segment(bound.args['factor']) if 'factor' in bound.args else '2.0'
    values = ['scale=' + factor, "mode='%s'" % _MODES[mode[0]], "distribution='uniform'"]
    values += ['%s=%s' % (name, source.segment(bound.args[name])) for name in ('seed', 'dtype') if name in bound.args]
    start = _opening(source, call)
    return [Edit(start, source.end(call) - 1, ', '.join(values))]


def _regularizer(source: Source, call: ast.Call, home: Home) -> Optional[List[Edit]]:
    """Half the sum of squares in the one place, the whole sum in the other."""
    bound = bind(call, ('scale', 'scope'))
    scale = bound.args.get('scale')
    if bound.hidden or bound.unknown or scale is None or 'scope' in bound.positional:
        return None
    edits = remove_keywords(source, call, {bound.keywords['scope']}) if 'scope' in bound.keywords else []
    start: Optional[int] = source.start(scale)
    if 'scale' in bound.keywords:
        start = keyword_start(source, bound.keywords['scale'])
    if edits is None or start is None:
        return None
    half = '0.5 * ' if home.name.endswith('.l2') else ''
    simple = isinstance(scale, _FACTORS) or constant(scale) is not None or not half
    if half or start != source.start(scale):
        edits.append(Edit(start, source.start(scale), half + ('' if simple else '(')))
    if not simple:
        edits.append(Edit(source.end(scale), source.end(scale), ')', closing=True))
    return edits


def _opening(source: Source, call: ast.Call) -> int:
    """Where the arguments of a call start."""
    at = source.skip_trivia(source.end(call.func))
    while source.text[at] == ')':
        at = source.skip_trivia(at + 1)
    return at + 1


_SPECIAL: Dict[str, Callable[[Source, ast.Call, Home], Optional[List[Edit]]]] = {
    'xavier': _xavier, 'variance_scaling': _variance_scaling, 'regularizer': _regularizer}
