"""Other spellings of the same code: same syntax tree, other text."""

from __future__ import annotations

import io
import keyword
import random
import re
import tokenize
from typing import Callable, NamedTuple, Sequence

_FSTRING = getattr(tokenize, "FSTRING_START", None), getattr(tokenize, "FSTRING_END", None)
_LAYOUT = frozenset({tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})
_NOT_CALLED = frozenset({"def", "class", "import", "@", "case", "type"})


class Token(NamedTuple):
    """A token: the text before it, its own, how many brackets it is inside of, and its kind (``name``,
    ``string``, ``operator``, ``number``, ``comment``, ``end`` of a line)."""

    before: str
    text: str
    depth: int
    kind: str


def spelled_otherwise(text: str, chance: random.Random, comments: bool) -> str:
    """The same code with other blanks, line breaks, parentheses, commas and, if wanted, comments."""
    tokens = tokens_of(text)
    for step, often in ((_in_parentheses, 0.15), (_with_last_comma, 0.3)):
        if chance.random() < 0.5:
            tokens = step(tokens, lambda: chance.random() < often)
    if chance.random() < 0.7:
        tokens = _spaced(tokens, chance, comments)
    made = "".join(token.before + token.text for token in tokens)
    return _indented(made, chance) if chance.random() < 0.3 else made


def tokens_of(text: str) -> list[Token]:
    """The tokens of some code; their texts and those before them together are the code."""
    lines = [0]
    for line in io.StringIO(text):
        lines.append(lines[-1] + len(line))
    found: list[Token] = []
    done = depth = inside = 0
    for kind, string, start, end, _ in tokenize.generate_tokens(io.StringIO(text).readline):
        begin, stop = lines[start[0] - 1] + start[1], lines[end[0] - 1] + end[1]
        if inside or kind == _FSTRING[0]:
            inside += (kind == _FSTRING[0]) - (kind == _FSTRING[1])
            if inside:
                first = begin if len(found) == 0 or found[-1].kind != "open string" else -1
                if first >= 0:
                    found.append(Token(text[done:begin], "", depth, "open string"))
                    done = begin
            else:
                opened = found.pop()
                found.append(opened._replace(text=text[done:stop], kind="string"))
                done = stop
            continue
        if kind in _LAYOUT or stop == begin:
            continue
        name = {
            tokenize.NAME: "name",
            tokenize.STRING: "string",
            tokenize.NUMBER: "number",
            tokenize.COMMENT: "comment",
            tokenize.NEWLINE: "end",
        }.get(kind, "operator")
        depth -= string in (")", "]", "}") and name == "operator"
        found.append(Token(text[done:begin], text[begin:stop], depth, name))
        depth += string in ("(", "[", "{") and name == "operator"
        done = stop
    return found + [Token(text[done:], "", 0, "end")]


def _in_parentheses(tokens: list[Token], sometimes: Callable[[], bool]) -> list[Token]:
    """Put parentheses around values of arguments and assignments, and around what is called."""
    opening: list[int] = []
    closing: list[int] = []
    for first, last in _values(tokens) + _called(tokens):
        if sometimes():
            opening.append(first)
            closing.append(last)
    made: list[Token] = []
    for index, token in enumerate(tokens):
        for _ in range(opening.count(index)):
            made.append(Token(token.before, "(", token.depth, "operator"))
            token = token._replace(before="")
        made.append(token)
        made += [Token("", ")", token.depth, "operator")] * closing.count(index)
    return _deepened(made)


def _deepened(tokens: list[Token]) -> list[Token]:
    depth = 0
    made = []
    for token in tokens:
        depth -= token.kind == "operator" and token.text in (")", "]", "}")
        made.append(token._replace(depth=depth))
        depth += token.kind == "operator" and token.text in ("(", "[", "{")
    return made


def _values(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """The first and last token of each value of an argument of a call, and of each simple assignment."""
    found: list[tuple[int, int]] = []
    for index, token in enumerate(tokens):
        if _opens_call(tokens, index):
            for first, last in _items(tokens, index):
                if tokens[first].kind == "name" and last > first + 1 and tokens[first + 1].text == "=":
                    first += 2
                texts = {t.text for t in tokens[first : last + 1] if t.depth == token.depth + 1}
                if not texts & {"lambda", ":", ":=", "*", "**"} and not any(
                    t.kind == "comment" for t in tokens[first : last + 1]
                ):
                    found.append((first, last))
        elif (
            token.text == "="
            and token.depth == 0
            and tokens[index - 1].kind == "name"
            and (index < 2 or tokens[index - 2].kind == "end")
        ):
            behind = (i for i, t in enumerate(tokens) if i > index and (t.kind in ("end", "comment") or t.text == ";"))
            last = next(behind) - 1
            if not any(t.text == "=" and t.depth == 0 for t in tokens[index + 1 : last + 1]) and last > index:
                found.append((index + 1, last))
    return found


def _opens_call(tokens: Sequence[Token], index: int) -> bool:
    if tokens[index].text != "(" or index == 0 or tokens[index].kind != "operator":
        return False
    before = tokens[index - 1]
    if (
        before.kind == "name"
        and not keyword.iskeyword(before.text)
        and before.text not in ("print", "match")
        or before.text in (")", "]")
    ):
        line = index
        while line and tokens[line - 1].kind != "end":
            line -= 1
        return not {t.text for t in tokens[line:index] if t.kind in ("name", "operator")} & _NOT_CALLED
    return False


def _items(tokens: Sequence[Token], index: int) -> list[tuple[int, int]]:
    """The first and last tokens of what stands between the commas behind an opening bracket."""
    inner = tokens[index].depth + 1
    found = []
    first = at = index + 1
    while tokens[at].depth >= inner:
        if tokens[at].text == "," and tokens[at].depth == inner and tokens[at].kind == "operator":
            found.append((first, at - 1))
            first = at + 1
        at += 1
    if any(t.text in ("for", "async") and t.depth == inner for t in tokens[index:at]):
        return []  # one generator
    return found + ([(first, at - 1)] if at > first else [])


def _called(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """The first and last token of each dotted name that is called, and of what stands before its dots."""
    found = []
    for index in range(1, len(tokens)):
        if not _opens_call(tokens, index) or tokens[index - 1].kind != "name":
            continue
        first = index - 1
        while first >= 2 and tokens[first - 1].text == "." and tokens[first - 2].kind == "name":
            first -= 2
        if first == 0 or tokens[first - 1].text != ".":
            found.append((first, index - 1))
            if first < index - 1:
                found.append((first, first))
    return found


def _with_last_comma(tokens: list[Token], sometimes: Callable[[], bool]) -> list[Token]:
    behind = set()
    for index in range(len(tokens)):
        items = _items(tokens, index) if _opens_call(tokens, index) else []
        if items and tokens[items[-1][1] + 1].text == ")" and tokens[items[-1][1]].kind != "comment" and sometimes():
            behind.add(items[-1][1])
    made: list[Token] = []
    for index, token in enumerate(tokens):
        made.append(token)
        if index in behind:
            made.append(Token("", ",", token.depth, "operator"))
    return made


def _spaced(tokens: list[Token], chance: random.Random, comments: bool) -> list[Token]:
    often = chance.choice([0.02, 0.1, 0.4])
    made: list[Token] = []
    decorates = False
    for token in tokens:
        before = token.before
        starts_line = (
            not made or made[-1].kind == "end" or made[-1].kind == "comment" and not token.depth and token.kind != "end"
        )
        decorates = token.text == "@" if starts_line else decorates
        if chance.random() < often and token.kind != "comment" and (made and made[-1].kind != "comment"):
            if starts_line:
                before = chance.choice(["\n", " \n", "\x0c\n"] + ["# note\n", "        # deep\n"] * comments) + before
            elif token.depth and token.kind != "end":
                before += chance.choice(
                    [" ", "\t", "\n", "\n  ", " \\\n", "\x0c"] + [' # (note) "\n', "#\n\n"] * comments
                )
            elif token.kind == "end" and token.text:
                before += (
                    chance.choice([" ", ";", " ; ", "\t"] + ["  # it's", "#,)"] * comments)
                    if made[-1].text not in (":", ";") and not decorates
                    else chance.choice([" "] + ["  # it's"] * comments)
                )
            elif token.text:
                before += chance.choice([" ", "  ", " \\\n", "\t", "\\\n\\\n "])
        made.append(token._replace(before=before))
    return made


def _indented(text: str, chance: random.Random) -> str:
    """Blocks indented by something else than four spaces; text with strings of several lines stays."""
    if re.search(r'"""|\'\'\'', text):
        return text
    unit = chance.choice(["\t", "  ", " ", "        "])
    return (
        re.sub(r"^(?: {4})+", lambda m: unit * (len(m.group()) // 4), text, flags=re.MULTILINE)
        if not re.search(r"^(?: {4})* {1,3}[^ ]|\t", text, re.MULTILINE)
        else text
    )
