"""Messages for people: an English template with its values, which ``report`` translates where it prints them."""

from __future__ import annotations

from typing import List, Union

MessageParts = Union[str, List["MessageParts"]]  # a message as JSON values


class Message(str):
    """An English text that remembers its template and values.

    Args:
        template: the text with ``{0}``, ``{1}`` for the values, or a message; without values it is the text itself.
        values: names and code of the script, which stay, and other texts of the tool.
    """

    template: str
    values: tuple[str, ...]

    def __new__(cls, template: str, *values: object) -> Message:
        if not values and isinstance(template, Message):
            return template
        message = super().__new__(cls, template.format(*values) if values else template)
        message.template = template
        message.values = tuple([value if isinstance(value, str) else str(value) for value in values])
        return message

    def __str__(self) -> Message:
        return self  # so the text of an exception is its message

    def __reduce__(self) -> tuple[type[Message], tuple[str, ...]]:
        return Message, (self.template, *self.values)

    def as_sentence(self) -> Message:
        """Return the message with a capital letter."""
        return Message(self.template[:1].upper() + self.template[1:], *self.values)


def message_to_json(text: str) -> MessageParts:
    """Return a message as JSON values."""
    return [text.template, *map(message_to_json, text.values)] if isinstance(text, Message) else text


def message_from_json(parts: MessageParts) -> str:
    """Return the message from the values of :func:`message_to_json`."""
    return parts if isinstance(parts, str) else Message(*map(message_from_json, parts))
