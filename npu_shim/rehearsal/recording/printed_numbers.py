"""Read the numbers of printed lines.

Lines with the same text between their numbers have one name. A number is left out if it is a time, a rate or a size of
memory: a unit of these follows it, or a word for these stands before it, after the last number. So are dates, times of
day, and lines with a carriage return, as of progress bars.
"""

from __future__ import annotations

import re

_MOST = 16  # numbers of a line; those of an array are recorded elsewhere
_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|inf(?:inity)?)(?!\w|\.\w|[-:/]\d)", re.IGNORECASE
)
_DATE = re.compile(
    r"(?:19|20)\d\d([-/._]?)[01]\d\1[0-3]\d(?:[T_ -]*[0-2]\d([-:._h]?)[0-5]\d(?:\2[0-5]\d)?(?:[.,]\d+)?)?(?!\d)"
    r"|\d{4}[-/]\d\d[-/]\d\d|\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?"
)
_UNIT = re.compile(
    r"\s*[(\[]?(?:[munµ]?s|sec\w*|min|mins|minutes?|h|hrs?|hours?|days?|fps|it/\w+|[\w-]+\s*(?:/|per)\s*(?:s|sec\w*|min\w*)"
    r"|[KMGT]i?B|bytes)\b",
    re.IGNORECASE,
)
_WORD = re.compile(
    r"\b(?:times?|timestamp|elapsed|took|takes|eta|duration|speed|throughput|latency|fps|secs?|seconds?|ms|minutes?|hours?"
    r"|memory|mem|pid|per)\b|/\s*(?:s|sec\w*)\b|_(?:time|sec|seconds|ms)\b",
    re.IGNORECASE,
)


def name_and_numbers_of(line: str) -> tuple[str, list[tuple[float, float]]]:
    """Return the name of a line, and its numbers, each with the unit of its last digit; 0 for integers.

    There are none if a line has too many, or a carriage return.
    """
    line = _DATE.sub("", line)
    numbers, parts, end = [], [], 0
    for match in _NUMBER.finditer(line):
        before = line[end : match.start()]
        parts.append(before)
        end = match.end()
        if not (_UNIT.match(line, end) or _WORD.search(before)):
            numbers.append((float(match.group()), _unit_of_last_digit(match.group())))
    name = " ".join("#".join([*parts, line[end:]]).split())[:80]
    return name, numbers if len(numbers) <= _MOST and "\r" not in line else []


def _unit_of_last_digit(number: str) -> float:
    digits, _, exponent = number.lower().partition("e")
    decimals = digits.partition(".")[2]
    is_integer = not exponent and not decimals
    return 0.0 if is_integer else 10.0 ** (int(exponent or 0) - len(decimals))
