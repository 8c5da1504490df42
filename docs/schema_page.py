"""docs/report-schema.md, made from docs/report.schema.json."""

from __future__ import annotations

import json
import os
from typing import Any, Iterator

from convert_tf2npu.report.support import STATUSES

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.schema.json")
_HEAD = """# report.json

`convert_tf2npu -r DIR` writes `report.json`, an object in UTF-8 with each entry of a list on a line of its own.
This page describes version {version} of its schema; [report.schema.json](report.schema.json) is the same as a JSON
Schema (draft 7).

**Stability.** `schema_version` is raised if a field is removed, or changes its type or meaning. New fields, new rules,
and new values of `support` and `kind` do not raise it: ignore what you do not know. The wording of messages and titles
may change at any time; use `code`. The same run gives the same file: it contains no time and no host name.

**Counts.** A TensorFlow call is a call whose name resolves to TensorFlow, Keras or Horovod, through any import or
alias, or that a rule recognizes by type, such as the `batch` of a dataset. Flag values do not count. Each call counts
once: as `left` if there is a finding for it, else as `rewritten` if a rule rewrites it, else as `fine`. So `total` is
the sum of `fine`, `rewritten` and `left`. The counts of the summary are the sums over all files, and over all `apis`.
Rewrites and findings are counted separately: some are not at a call but, say, at an import, and two rules may report
one call.

| field | type | meaning |
| --- | --- | --- |
"""
_TAIL = """
## Support of a call on the NPU

| `support` | meaning |
| --- | --- |
{statuses}

The status comes from the vendor's list for that TensorFlow version. Rules override it: a call that a rule rewrites is
`migrated`, and a call with a finding is `limited`.

## report.sarif

SARIF 2.1.0, accepted by its schema and by the checks of GitHub code scanning: rewrites have the level `note`,
findings `warning`, unreadable files `error`; the latter are also notifications of the invocation. So is a `warning`
about the files that run TensorFlow 2 on the CPU, because no script opens the NPU device for them. A region is the
dotted name at the place; columns count UTF-16 units. In a notebook the region refers to the lines of the file, and the
message has cell, line and column. Fingerprints survive changes elsewhere in a file.
"""


def markdown() -> str:
    """Return the page."""
    with open(SCHEMA, encoding="utf-8") as stream:
        schema = json.load(stream)
    rows = ["| `{}` | {} | {} |".format(*row) for row in _rows(schema, schema, "")]
    version = schema["properties"]["schema_version"]["const"]
    statuses = "\n".join(f"| `{name}` | {status.advice} |" for name, status in STATUSES.items())
    return _HEAD.format(version=version) + "\n".join(rows) + "\n" + _TAIL.format(statuses=statuses)


def _rows(schema: dict[str, Any], part: dict[str, Any], prefix: str) -> Iterator[tuple[str, str, str]]:
    for name, given in part["properties"].items():
        field = dict(_resolved(schema, given), description=given["description"])
        yield prefix + name, _type(field), field["description"]
        if field.get("type") == "object":
            yield from _rows(schema, field, prefix + name + ".")
        elif "properties" in field.get("items", {}):
            yield from _rows(schema, field["items"], prefix + name + "[].")


def _resolved(schema: dict[str, Any], field: dict[str, Any]) -> dict[str, Any]:
    return schema["definitions"][field["$ref"].rsplit("/", 1)[1]] if "$ref" in field else field


def _type(field: dict[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return "`{}`".format(json.dumps(field["const"]))
    found = field["type"]
    return found if isinstance(found, str) else " or ".join(found)
