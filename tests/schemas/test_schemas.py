"""The reports are what their schemas, and the validator of those who wrote SARIF, say they must be."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import jsonschema
import pytest
from convert_tf2npu.main import main

_SARIF = pathlib.Path(sys.prefix) / "sarif" / "node_modules" / "@microsoft" / "sarif-multitool-linux"
NOTEBOOK = {"cells": [{"cell_type": "code", "source": ["import tensorflow as tf\n", '"\U0001f600"; tf.Session()\n']}]}
TREES: dict[str, dict[bytes, bytes]] = {
    "ordinary": {
        b"train.py": b"import tensorflow as tf\nwith tf.Session() as sess:\n    sess.run(x)\n",
        b"on_cpu.py": b"import tensorflow as tf\n@tf.function\ndef f(x):\n    return tf.abs(x)\n",
    },
    "everything": {
        b"a.py": b"import tensorflow as tf\ntf.Session()\ntf.Session(**kw)\nx = tf.where(y)\ntf.abs(1)\n",
        b"b c/<script>\"'.py": b'import tensorflow as tf\n"\xf0\x9f\x98\x80", tf.Session()\n',
        b"bytes \xff\xfe.py": b"import tensorflow as tf\ntf.Session()\n",
        b"line\nbreak.py": b"import tensorflow as tf\ntf.Session()\n",
        b"latin.py": b'# -*- coding: latin-1 -*-\nimport tensorflow as tf\n"\xe9"; tf.Session()\n',
        b"python2.py": b'import tensorflow as tf\nprint "a"\n',
        b"nul.py": b"import tensorflow as tf\n\x00\n",
        b"not_utf8.py": b"import tensorflow as tf\n# \xe9\n",
        b"cr.py": b"import tensorflow as tf\rtf.Session()\r",
        b"nb.ipynb": json.dumps(NOTEBOOK, indent=1).encode(),
        b"broken.ipynb": b'{"cells": [',
        b"old.ipynb": b'{"worksheets": [], "nbformat": 3}',
        b"cell.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": "tensorflow\nx = ("}]}).encode(),
        b"long.py": b'import tensorflow as tf\nx = "' + b"x" * 100_000 + b'"; tf.Session()\n',
    },
    "nothing": {b"words.txt": b"a\n"},
    "only what cannot be read": {b"a.py": b"import tensorflow as tf\nx = (\n"},
}


@pytest.fixture(scope="module", params=sorted(TREES), ids=str)
def reports(request: Any, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("project")
    for name, raw in TREES[request.param].items():
        path = os.path.join(os.fsencode(folder), b"src", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(raw)
    main(["-i", str(folder / "src"), "-o", str(folder / "out"), "-r", str(folder / "reports")])
    return folder / "reports"


def read(path: pathlib.Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def closed(schema: Any) -> Any:
    """A schema that also forbids what it does not name."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(part) for name, part in schema.items()}
    return dict(made, additionalProperties=False) if made.get("type") == "object" and "properties" in made else made


def test_the_json_report_is_what_its_schema_says_and_no_more(reports: pathlib.Path, repo_root: pathlib.Path) -> None:
    schema = read(repo_root / "docs" / "report.schema.json")
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(read(reports / "report.json"), closed(schema))


def test_the_counts_of_the_json_report_add_up(reports: pathlib.Path) -> None:
    report = read(reports / "report.json")

    def total(entries: list[Any], key: str) -> dict[str, int]:
        return {name: sum(entry[key][name] for entry in entries) for name in ("total", "fine", "rewritten", "left")}

    calls = report["summary"]["tensorflow_calls"]
    assert calls["total"] == calls["fine"] + calls["rewritten"] + calls["left"]
    assert total(report["files"], "tensorflow_calls") == total(report["apis"], "calls") == calls
    assert all(len(api["places"]) == api["calls"]["total"] for api in report["apis"])
    kinds = [d["kind"] for file in report["files"] for d in file["diagnostics"]]
    assert (kinds.count("change"), kinds.count("finding")) == (
        report["summary"]["rewrites"],
        report["summary"]["findings"],
    )
    assert sum(rule["errors"] for rule in report["rules"]) == report["summary"]["files_unreadable"]


def test_the_sarif_report_is_what_the_schema_says(reports: pathlib.Path) -> None:
    schema = read(_SARIF / "sarif-2.1.0.json")
    jsonschema.validators.validator_for(schema).check_schema(schema)
    jsonschema.validate(read(reports / "report.sarif"), schema)


def validated(report: pathlib.Path, tmp_path: pathlib.Path) -> list[str]:
    """The rules of SARIF and of GitHub code scanning that a report breaks, by the validator."""
    found = tmp_path / "found.sarif"
    done = subprocess.run(
        [
            str(_SARIF / "Sarif.Multitool"),
            "validate",
            str(report),
            "--output",
            str(found),
            "--log",
            "ForceOverwrite",
            "--rule-kind",
            "Sarif;Gh;Ghas",
            "--level",
            "Error;Warning",
        ],
        env=dict(os.environ, DOTNET_SYSTEM_GLOBALIZATION_INVARIANT="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert found.exists(), done.stdout
    (run,) = read(found)["runs"]
    assert run["invocations"][0]["executionSuccessful"], done.stdout
    return sorted("{} {}".format(r["ruleId"], r["message"].get("id", "")) for r in run.get("results", ()))


def test_the_validator_of_sarif_and_of_code_scanning_accepts_it(reports: pathlib.Path, tmp_path: pathlib.Path) -> None:
    # The one thing it misses is an address of the tool in the network.
    assert validated(reports / "report.sarif", tmp_path) == ["SARIF2005 Warning_ProvideToolnformationUri"]


def test_the_validator_does_find_what_is_wrong(tmp_path: pathlib.Path) -> None:
    run = {"tool": {"driver": {"name": "a"}}, "results": [], "originalUriBaseIds": {"SRC": {"uri": "no address"}}}
    (tmp_path / "wrong.sarif").write_text(json.dumps({"version": "2.1.0", "runs": [run]}))
    assert "SARIF1002 Error_UrisMustConformToRfc3986" in validated(tmp_path / "wrong.sarif", tmp_path)
