"""Files beside the scripts that start or configure TensorFlow Serving: each example of NPU285, and whole runs."""

from __future__ import annotations

import json
import pathlib

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.main import main
from convert_tf2npu.report.explanation import doc_blocks
from convert_tf2npu.rules.registry import Registry

CODE = "NPU285"
RULE = Registry().by_code(CODE)
assert RULE is not None
PIECES = doc_blocks(RULE.doc)
EXAMPLES = [
    (heading.text.split()[0], code.text)
    for heading, code in zip(PIECES, PIECES[1:])
    if heading.kind == "heading" and "another file" in heading.text
]
SERVER = (
    "#!/bin/sh\nexec tensorflow_model_server --port=8500 \\\n  --model_base_path=/models/net \\\n  --enable_batching\n"
)


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("label,text", EXAMPLES)
def test_each_example_is_reported_or_not(label: str, text: str, newline: str) -> None:
    result = Converter().convert(text.replace("\n", newline).encode(), "serve.sh")
    assert result.new is None
    assert {each.code for each in result.diagnostics} == ({CODE} if label == "Reported" else set())
    for each in result.diagnostics:
        assert 0 < each.line <= text.count("\n") + 1 and len(each.message) < 175


def test_the_places_are_those_of_the_file() -> None:
    configured = SERVER.replace("=8500", "=8500 --platform_config_file=net.platform.pbtxt")
    places = [
        [(each.line, each.col) for each in Converter().convert(text.encode(), "serve.sh").diagnostics]
        for text in (SERVER, configured, SERVER.replace("exec", "# exec"))
    ]
    assert places == [[(2, 6)], [(4, 3)], []]


def test_a_comment_or_an_option_suppresses_the_finding() -> None:
    line = "tensorflow_model_server --port=8500 --model_base_path=/models/net"
    for comment, found in (("", 1), ("  # npu: ignore[NPU285]", 0), ("  # npu: ignore[NPU284]", 1)):
        assert len(Converter().convert((line + comment).encode(), "serve.sh").diagnostics) == found
    assert not Converter(Settings(ignore=(CODE,))).convert(line.encode(), "serve.sh").diagnostics


def test_a_run_reports_files_of_the_server_and_changes_none(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, made = tmp_path / "source", tmp_path / "made"
    source.mkdir()
    (source / "train.py").write_text("import tensorflow as tf\n")
    (source / "serve.sh").write_text(SERVER)
    (source / "words.txt").write_text("tensorflow_model_server --port=1 --model_name=a\n" + "word\n" * 20_000)  # 100 kB
    (source / "logo.bin").write_bytes(SERVER.encode())
    (source / "link.sh").symlink_to("serve.sh")
    for _ in range(2):  # the second run remembers the first
        assert main(["-i", str(source), "-o", str(made), "-r", str(tmp_path / "report"), "--force"]) == 0
        shown = capsys.readouterr().out
        assert "serve.sh:2:6: NPU285" in shown and shown.count("NPU285") == 1
        assert "1 Python file, 0 changed; 0 rewrites, 1 place needs a manual change." in shown
    assert (made / "serve.sh").read_text() == SERVER
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert [each["code"] for file in report["files"] for each in file["diagnostics"]] == [CODE]
    (source / "serve.sh").write_text(
        SERVER.replace("--port", "--platform_config_file=a.pbtxt --port").replace("--enable_batching", "")
    )
    main(["-i", str(source)])
    assert "NPU285" not in capsys.readouterr().out
    assert main(["-i", str(source / "serve.sh"), "--check"]) == 0
