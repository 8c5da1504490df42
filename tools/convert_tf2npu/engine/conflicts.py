"""Reasons for which the change of a rule cannot be made at its place."""

from __future__ import annotations

from ..files.message import Message
from ..project.context import Context
from ..rewrite.call_edits import broken_string, loses_comment
from ..rewrite.change import Change, Finding, Result
from ..rewrite.npu_imports import first_taken_name
from ..rewrite.spans import Spans


def change_or_finding(context: Context, change: Change, replaced: Spans) -> Result:
    """Return the change, or a finding with the reason if it cannot be made.

    Args:
        context: the script.
        change: what a rule wants to write.
        replaced: the parts of the text (start, end) that other changes replace.
    """
    reason = _reason_against_change(context, change, replaced)
    return Finding(change.node, reason) if reason else change


def _reason_against_change(context: Context, change: Change, replaced: Spans) -> str:
    name = first_taken_name(change.uses, context.names)
    if name:
        return Message(
            "this file uses the name {0} for something else. Rename it and run again: {1}", name, change.message
        )
    if any(broken_string(context.source, context.names, edit) for edit in change.edits):
        return Message(
            "the code is inside an f-string. Move it to a line of its own and run again: {0}", change.message
        )
    if loses_comment(context.source, change.edits):
        return Message(
            "a comment stands inside the code to replace. Put it before the statement and run again: {0}",
            change.message,
        )
    if any(replaced.overlaps(edit.start, edit.end) for edit in change.edits):
        return Message("another rule replaces the code around it. Convert it by hand: {0}", change.message)
    return ""
