"""Read JSON with comments and extra commas, and report each error with its line."""

from __future__ import annotations

import json
import re

from npu_shim.distributed.ranktable.model import Problem

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT = re.compile(_STRING + r"|(?P<comment>//[^\n]*|/\*.*?\*/|\#[^\n]*)", re.DOTALL)
_COMMA = re.compile(_STRING + r"|(?P<comma>,)(?=\s*[\]}])")
_NO_COMMENTS = "JSON has no comments. Remove them, or run npu-shim ranktable convert"
_NO_LAST_COMMA = "Remove the comma before the closing bracket, or run npu-shim ranktable convert"


class _Invalid(ValueError):
    """An error that Python's JSON parser accepts: (description, fix)."""


def load_lenient_json(text: str) -> tuple[object, tuple[Problem, ...]]:
    """Read JSON that may have comments, and commas before closing brackets.

    Args:
        text: of the file.
    Returns:
        (value, problems). The value is None if the text is not JSON otherwise; the problems name the lines.
    """
    problems: list[Problem] = []
    plain = _blank_matches(_COMMENT, "comment", text, "has a comment", _NO_COMMENTS, problems)
    plain = _blank_matches(_COMMA, "comma", plain, "has a comma after the last entry", _NO_LAST_COMMA, problems)
    try:
        return json.loads(plain, object_pairs_hook=_object_without_duplicates, parse_constant=_refuse_constant), tuple(
            problems
        )
    except json.JSONDecodeError as error:
        line = plain.split("\n")[error.lineno - 1].strip()
        what = f"is not JSON: {error.msg[:1].lower()}{error.msg[1:]}" + (f" in {_shorten(line)!r}" if line else "")
        return None, (
            *problems,
            Problem(_position_text(error.lineno, error.colno), what, _syntax_advice(error.msg, plain)),
        )
    except _Invalid as error:
        what, advice = error.args
        return None, (*problems, Problem("$", what, advice))
    except ValueError as error:  # a number with thousands of digits
        return None, (*problems, Problem("$", f"is not JSON: {error}", "Write a shorter number"))
    except RecursionError:
        return None, (Problem("$", "the brackets are nested too deeply", "Write a table with fewer levels"),)


def _blank_matches(
    pattern: re.Pattern[str], name: str, text: str, problem: str, advice: str, problems: list[Problem]
) -> str:
    """Return the text with each match replaced by spaces, and report the first one."""
    matches: list[tuple[int, str]] = []

    def blank(match: re.Match[str]) -> str:
        if match.group(name) is None:
            return match.group()
        matches.append((match.start(name), match.group(name)))
        return re.sub(r"[^\n]", " ", match.group())

    plain = pattern.sub(blank, text)
    if matches:
        at, first = matches[0]
        line = text.count("\n", 0, at) + 1
        column = at - (text.rfind("\n", 0, at) + 1) + 1
        shown = f" ({_shorten(first)})" if name == "comment" else ""
        more = f", and {len(matches) - 1} more" if len(matches) > 1 else ""
        problems.append(Problem(_position_text(line, column), f"is not JSON: it {problem}{shown}{more}", advice))
    return plain


def _object_without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members: dict[str, object] = {}
    for key, value in pairs:
        if key in members:
            raise _Invalid(
                f"the key {key!r} is given twice in one object, as {_shorten(json.dumps(members[key]))} and "
                f"as {_shorten(json.dumps(value))}",
                "Keep one of them",
            )
        members[key] = value
    return members


def _refuse_constant(name: str) -> float:
    raise _Invalid(f"is not JSON: {name} is not a number", "Write a number")


def _position_text(line: int, column: int) -> str:
    return f"line {line}, column {column}"


def _syntax_advice(message: str, text: str) -> str:
    if not text.strip():
        return "The file is empty. Run npu-shim ranktable make"
    if "'" in text and '"' not in text:
        return "Write names in double quotes"
    if message.startswith("Expecting ',' delimiter"):
        return "Put a comma between entries, and close each bracket"
    if message.startswith("Expecting property name"):
        return "Write names in double quotes, and no comma after the last entry"
    if message.startswith("Extra data"):
        return "Keep one object"
    return "Correct it, or run npu-shim ranktable make for a new table"


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
