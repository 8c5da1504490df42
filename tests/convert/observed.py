"""Scripts converted with facts about what their rules ask."""

from __future__ import annotations

import os
from typing import Any, Mapping

from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.results import FileResult
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.facts.facts import Facts, digest
from convert_tf2npu.facts.seen import FileFacts, Seen

Notes = Mapping[str, Any]


def converted_with_facts(text: str, *notes: Notes, runs: int = 2, **settings: Any) -> FileResult:
    """Convert a script with facts: for each expression that its rules ask about, in order, what was seen of it.

    Args:
        text: of the script.
        notes: the values of each attribute, a list if there were several; an empty mapping for no facts.
        runs: the number of observed runs.
        settings: of the tool.
    """
    path, raw = os.path.realpath("train.py"), text.encode()
    asked = Converter(Settings(**settings)).convert(raw, path).asked
    assert len(asked) == len(notes), asked
    file = FileFacts(digest(raw))
    for (_, _, place, _), attributes in zip(sorted(asked), notes):
        seen = Seen(runs, runs)
        for attribute, values in attributes.items():
            for value in values if isinstance(values, list) else [values]:
                seen.note(attribute, value)
        if attributes:
            file.seen[place] = seen
    facts = Facts(os.path.dirname(path), (), {os.path.basename(path): file})
    return Converter(Settings(facts=facts, **settings)).convert(raw, path)


def messages(result: FileResult) -> list[str]:
    """Return the messages of the findings on a script."""
    return [str(diagnostic.message) for diagnostic in result.diagnostics if diagnostic.kind != "change"]


def findings_and_text(text: str, *notes: Notes, **settings: Any) -> tuple[list[str], str]:
    """Return the findings on a script and its new text. The arguments are those of converted_with_facts()."""
    result = converted_with_facts(text, *notes, **settings)
    return messages(result), (result.new or text.encode()).decode()
