"""docs/report-schema.md, made from docs/report.schema.json."""

from __future__ import annotations

import json
import os
from typing import Any, Iterator

from convert_tf2npu.report.support import STATUSES

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.schema.json")
_HEAD = """# report.json

`convert_tf2npu -r DIR` writes `report.json`, an object in UTF-8 with each entry of a list on a line of its own.
This page is version %d of its schema; [report.schema.json](report.schema.json) is the same as a JSON Schema
(draft 7), to check a report with.

**What is stable.** `schema_version` is raised when a field goes, or changes its type or its meaning. New fields,
new rules, and new words for `support` and `kind` do not raise it: readers pass over what they do not know. The
wording of messages and titles is for people and may change at any time; go by `code`. The same run gives the
same file: it holds no time and no machine.

**What is counted.** A call of TensorFlow is a call whose name leads to TensorFlow, Keras or Horovod, by
whatever import or alias, or that a rule recognises by other means, such as the `batch` of a dataset; values of
flags are none. Each call counts once: as `left` where a finding is told of it, or else as `rewritten` where a rule
rewrites it, or else as `fine`. Rewrites and findings are counted by themselves: some stand where no call is, as
at an import, and two rules may speak of one call. So `total` is the sum of `fine`, `rewritten` and `left`, the
calls of all files together are those of the summary, and those of all `apis` too.

| field | type | meaning |
| --- | --- | --- |
"""
_TAIL = """
## How far the NPU supports a call

| `support` | meaning |
| --- | --- |
%s

The status is that of the vendor's list for that TensorFlow, unless a rule knows better: a call that a rule
rewrites is `migrated`, one of which a finding is told `limited`, whatever the list says of it in general.

## report.sarif

SARIF 2.1.0, accepted by its schema and by the checks of GitHub code scanning: rewrites have the level `note`,
findings `warning`, files that cannot be read `error`, and these are notifications of the invocation too. A region
is the dotted name at the place, columns count units of UTF-16. In a notebook it lies in the lines of the file, and
the message tells cell, line and column. Fingerprints outlive changes elsewhere in a file.
"""


def markdown() -> str:
    """The page."""
    with open(SCHEMA, encoding="utf-8") as stream:
        schema = json.load(stream)
    rows = ["| `{}` | {} | {} |".format(*row) for row in _rows(schema, schema, "")]
    statuses = "\n".join(f"| `{name}` | {status.advice} |" for name, status in STATUSES.items())
    return _HEAD % schema["properties"]["schema_version"]["const"] + "\n".join(rows) + "\n" + _TAIL % statuses


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
