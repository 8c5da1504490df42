"""Generate text from the option rows: the documentation page, one option, the docstring of a class."""

from __future__ import annotations

import re

from npu_shim.options.option import REQUIRED, Option
from npu_shim.options.table import KEYS, RULES, TABLE, options_by_argument

_WORDS = {"b": "bool", "i": "int", "s": "str"}


def documented_options() -> list[Option]:
    """Return the rows for sessions, Estimators and the package for TF 2, sorted by name."""
    rows = [
        row
        for row in TABLE
        if row.name in KEYS or "tf2" in row.modes and row.field is None and row.arg is None or row.name == "recompute"
    ]
    return sorted(rows, key=lambda row: row.name.lower())


def options_markdown() -> str:
    """Return the documentation page with a table of all options."""
    lines = [
        "# NPU options",
        "",
        "Give options to `npu_shim.session_config(config, name=value)` by name (also for Keras sessions), or to",
        "`NPURunConfig` and its config classes by argument. `global_options()` belongs to the vendor's TF 2 package.",
        "`.b`, `.i` and `.s` name the field of the `parameter_map` that holds the value. On the CPU, npu_shim checks",
        "the options and keeps them in the config. *effect* is the kind of effect on the NPU. npu_shim also checks a",
        "config that was filled by hand. If *other values* says error, the NPU refuses them, and so does npu_shim.",
        "Otherwise they are a warning.",
        "",
        "| option | allowed | other values | default | given by | effect | what it does |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join(lines + [_table_line(row) for row in documented_options()]) + "\n"


def option_paragraph(row: Option) -> str:
    """Return everything about one option, one fact per line."""
    facts = [
        ("what", row.doc),
        ("type", type_text(row)),
        ("allowed", row.allowed.text),
        ("set by hand to another value", ("an error" if row.refused else "a warning") if row.field else ""),
        ("default in a session", default_text(row.session)),
        ("given by", ", ".join(ways_to_set(row))),
        ("default for TF 2", default_text(row.default_for_tf2) if row.tf2_path else ""),
        ("not with", ", ".join(row.excludes)),
        ("needs", ", ".join(row.requires)),
        ("with others", " ".join(rules_of_option(row))),
        ("cards", row.products),
        ("effect", row.cpu.replace("_", " ")),
        ("deprecated", row.deprecated),
        ("use instead", row.replacement or ""),
        ("since", row.since),
    ]
    return "\n".join([row.name] + [f"  {what}: {text}" for what, text in facts if text])


def option_record(row: Option) -> dict[str, object]:
    """Return everything about one option for JSON. Missing facts are None or empty."""
    return {
        "name": row.name,
        "what": row.doc,
        "type": type_text(row),
        "allowed": row.allowed.text,
        "values": list(row.allowed.values),
        "refused_by_card": row.refused,
        "modes": list(row.modes),
        "default_in_session": row.session,
        "argument": row.arg,
        "argument_of": (row.holder or "NPURunConfig") if row.arg else None,
        "argument_required": row.estimator is REQUIRED,
        "argument_default": None if row.estimator is REQUIRED else row.estimator,
        "tf2": row.tf2_path,
        "tf2_default": row.default_for_tf2 if row.tf2_path else None,
        "given_by": ways_to_set(row),
        "not_with": list(row.excludes),
        "needs": list(row.requires),
        "rules": rules_of_option(row),
        "cards": row.products,
        "effect": row.cpu,
        "deprecated": row.deprecated,
        "use_instead": row.replacement,
        "since": row.since,
    }


def rules_of_option(row: Option) -> list[str]:
    """Return the rules between an option and other options, as sentences."""
    return [rule.text for rule in RULES if re.search(rf"\b{row.name}\b", rule.text)]


def arguments_docstring(holder: str | None) -> str:
    """Return the arguments of a config class (None for NPURunConfig) for its docstring."""
    lines = []
    for name, row in options_by_argument(holder).items():
        domain = f", {row.allowed.text}" if row.field else ""
        default = "required" if row.estimator is REQUIRED else f"{row.estimator!r} by default"
        lines.append(
            f"    {name}: {type_text(row)}{domain}; {default}. {row.doc}"
            + (f" Deprecated: {row.deprecated}" if row.deprecated else "")
        )
    return "\n".join(lines)


def type_text(row: Option) -> str:
    """Return bool, int or str; the name of a config class; or 'any' for an argument that is not a key."""
    if row.field:
        return _WORDS[row.field]
    return row.holds or ("any" if row.arg is not None else "int")


def default_text(value: object) -> str:
    """Return a default as source text, an empty string for None."""
    return "" if value is None else repr(value)


def ways_to_set(row: Option) -> list[str]:
    """Return the ways to set an option."""
    ways = []
    if row.name in KEYS:
        ways.append(f'parameter_map["{row.name}"].{row.field}')
    if row.arg is not None:
        default = "required" if row.estimator is REQUIRED else repr(row.estimator)
        ways.append(f"{row.holder or 'NPURunConfig'}({row.arg}={default})")
    if row.tf2_path is not None:
        ways.append(f"global_options().{row.tf2_path}")
    return ways


def _table_line(row: Option) -> str:
    parts = [row.doc]
    for text, what in (
        (" and ".join(row.excludes), "Not with"),
        (" and ".join(row.requires), "Needs"),
        (row.products, "Cards:"),
    ):
        parts += [f"{what} {text}."] if text else []
    parts += [f"**Deprecated.** {row.deprecated}"] if row.deprecated else []
    cells = [
        f'<a id="{row.name}"></a>`{row.name}`',
        f"{type_text(row)}: {row.allowed.text}",
        "error" if row.refused else "warning",
        f"`{default_text(row.session)}`" if row.session is not None else "",
        "<br>".join(f"`{one}`" for one in ways_to_set(row)),
        row.cpu.replace("_", " "),
        " ".join(parts),
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
