"""From text to JSON; where it is none, the line and the reason, and the JSON without comments and stray commas."""

from __future__ import annotations

import json
import re
from typing import Any

from npu_shim.distributed.ranktable.model import Problem

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT = re.compile(_STRING + r"|(?P<comment>//[^\n]*|/\*.*?\*/|\#[^\n]*)", re.DOTALL)
_COMMA = re.compile(_STRING + r"|(?P<comma>,)(?=\s*[\]}])")
_NO_COMMENTS = (
    "JSON has no comments, though the vendor's manual prints them; npu-shim ranktable convert writes the "
    "file without them"
)
_NO_LAST_COMMA = "Take away the comma before the closing bracket; npu-shim ranktable convert writes the file without it"


class _Refused(ValueError):
    """What Python's reader of JSON lets pass: (what is wrong, what to do)."""


def load(text: str) -> tuple[Any, tuple[Problem, ...]]:
    """Reads JSON, and what is JSON but for comments and commas before closing brackets.

    Args:
        text: of the whole file.
    Returns:
        (value, problems): the value is None where nothing can be made of the text; the problems name each line.
    """
    problems: list[Problem] = []
    plain = _without(_COMMENT, "comment", text, "has a comment", _NO_COMMENTS, problems)
    plain = _without(_COMMA, "comma", plain, "has a comma after the last entry", _NO_LAST_COMMA, problems)
    try:
        return json.loads(plain, object_pairs_hook=_object, parse_constant=_constant), tuple(problems)
    except json.JSONDecodeError as error:
        line = plain.split("\n")[error.lineno - 1].strip()
        what = f"is not JSON: {_lowered(error.msg)}" + (f" in {_shortened(line)!r}" if line else "")
        return None, (*problems, Problem(_place(error.lineno, error.colno), what, _advice(error.msg, plain)))
    except _Refused as error:
        what, advice = error.args
        return None, (*problems, Problem("$", what, advice))
    except ValueError as error:  # a number of thousands of digits
        return None, (*problems, Problem("$", f"is not JSON: {error}", "Write a number that is one"))
    except RecursionError:
        return None, (Problem("$", "the brackets are nested too deeply", "A rank table is not as deep; write it anew"),)


def _without(pattern: re.Pattern[str], name: str, text: str, what: str, advice: str, problems: list[Problem]) -> str:
    """The text with each match blanked out, so that lines and columns stay; the first is a problem."""
    found: list[tuple[int, str]] = []

    def blank(match: re.Match[str]) -> str:
        if match.group(name) is None:
            return match.group()
        found.append((match.start(name), match.group(name)))
        return re.sub(r"[^\n]", " ", match.group())

    plain = pattern.sub(blank, text)
    if found:
        at, first = found[0]
        line = text.count("\n", 0, at) + 1
        column = at - (text.rfind("\n", 0, at) + 1) + 1
        shown = f" ({_shortened(first)})" if name == "comment" else ""
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        problems.append(Problem(_place(line, column), f"is not JSON: it {what}{shown}{more}", advice))
    return plain


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise _Refused(
                f"the key {key!r} is given twice in one object, as {_shortened(json.dumps(made[key]))} and "
                f"as {_shortened(json.dumps(value))}",
                "Keep one of them",
            )
        made[key] = value
    return made


def _constant(name: str) -> float:
    raise _Refused(f"is not JSON: {name} is no number", "Write a number there")


def _place(line: int, column: int) -> str:
    return f"line {line}, column {column}"


def _advice(message: str, text: str) -> str:
    if not text.strip():
        return "The file is empty; npu-shim ranktable make writes one"
    if "'" in text and '"' not in text:
        return "JSON puts names in double quotes"
    if message.startswith("Expecting ',' delimiter"):
        return "Put a comma between entries, and close each bracket"
    if message.startswith("Expecting property name"):
        return "Names stand in double quotes, and after the last entry comes no comma"
    if message.startswith("Extra data"):
        return "Keep one object; what follows it belongs elsewhere"
    return "Correct it there; npu-shim ranktable make writes a new one"


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _shortened(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
