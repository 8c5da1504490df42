"""The language that the command speaks: that of ``--language``, else that of the locale."""

from __future__ import annotations

import io
from typing import Mapping, Sequence, TextIO

from ..report.language import ENGLISH, Language

NAMES = "en", "zh"


def language_of_command_line(arguments: Sequence[str], environment: Mapping[str, str]) -> Language:
    """Return the language that a command line asks for with ``--language``, else the locale.

    Args:
        arguments: the command line; it may be wrong, as its error is printed in this language.
        environment: the environment variables.
    """
    name = _language_argument(arguments)
    if not name:
        locale = next((environment[key] for key in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(key)), "")
        name = "zh" if locale.startswith("zh_CN") else "en"
    if name != "zh":
        return ENGLISH
    from ..report.translation import Translation, read_catalogue  # only here: a run in English needs neither

    return Translation("zh-CN", read_catalogue(name))


def use_utf8_if_needed(translate: Language, *streams: TextIO) -> None:
    """Let streams whose encoding lacks the letters of a language write UTF-8: people asked for this language."""
    for stream in streams:
        if translate is not ENGLISH and isinstance(stream, io.TextIOWrapper):
            try:
                translate("error").encode(stream.encoding)
            except UnicodeEncodeError:
                stream.reconfigure(encoding="utf-8")


def _language_argument(arguments: Sequence[str]) -> str:
    name = ""
    for number, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        if option == "--language":
            name = value if equals else "".join(arguments[number + 1 : number + 2])
    return name
