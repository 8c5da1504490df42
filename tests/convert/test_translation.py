"""The tool's messages, help and reports in Chinese: the catalogue is complete, and JSON and SARIF stay English."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from convert_tf2npu.cli.language_option import language
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.main import main
from convert_tf2npu.report import explanation
from convert_tf2npu.report.language import ENGLISH
from convert_tf2npu.report.translation import Translation, read_catalogue, wrapped
from convert_tf2npu.rules.registry import Registry
from tests.convert.english_texts import FOLDER, docs, everything, is_prose, messages

pytestmark = pytest.mark.once

ENTRIES = read_catalogue("zh")
CHINESE = language(["--language", "zh"], {})
CJK = r"[\u4e00-\u9fff]"
ENGLISH_WORDS = re.compile(r"\b(?:the|of|this|its|are|which|may|cannot|each|without|has|have)\b", re.IGNORECASE)
WORD = re.compile(r"[A-Za-z][A-Za-z]+")
NAME = re.compile(r"NPU\d+|(?<![\w-])--?[a-z][\w-]*|\w*[._=]\w[\w.=]*(?<!\.)|\b[a-z]+[A-Z]\w+")
# English terms in Chinese texts where the English text has another form of the word.
TERMS = {"loss", "scale", "finding", "global", "id", "one", "kernel"}


def test_each_message_has_a_translation() -> None:
    """General keys such as ``Use tf.{0}`` translate messages that have no other words than theirs."""
    missing = [
        f"{file}: {key}" for key, file in messages().items() if key not in ENTRIES and is_prose(CHINESE(key) or "the a")
    ]
    assert missing == [] and len(ENTRIES) > 900


def test_no_translation_is_stale() -> None:
    assert sorted(set(ENTRIES) - everything()) == []


@pytest.mark.parametrize("what", ["values", "names"])
def test_values_codes_options_and_names_agree(what: str) -> None:
    pattern = re.compile(r"(?<!\{)\{\d+\??\}") if what == "values" else NAME
    found = []
    for key, text in ENTRIES.items():
        ours, theirs = ({part.replace("?", "") for part in pattern.findall(each)} for each in (text, key))
        if ours != theirs:
            found.append(f"{key}: {ours} instead of {theirs}")
    assert found == []


def test_translations_use_no_english_but_terms() -> None:
    """Words such as rank and session are in both texts."""
    found = [
        f"{key}: {word}"
        for key, text in ENTRIES.items()
        for word in WORD.findall(text)
        if word.lower() not in key.lower() and word not in TERMS
    ]
    assert found == []


def test_chinese_and_latin_letters_are_apart() -> None:
    apart = re.compile(rf"{CJK}[A-Za-z0-9_]|[A-Za-z0-9_]{CJK}")
    assert [text for text in ENTRIES.values() if apart.search(text)] == []
    assert [text for text in ENTRIES.values() if re.search(rf"{CJK}[,;?!]|{CJK}\.(?!\w)", text)] == []


def test_messages_of_the_examples_are_chinese() -> None:
    left = []
    for rule in Registry().rules:
        convert = Converter(Settings(select=(rule.code,), **rule.needs)).convert
        for block in explanation.blocks(rule.doc):
            if block.kind == "code":
                for diagnostic in convert(block.text.encode()).diagnostics:
                    said = CHINESE(diagnostic.message)
                    if not re.search(CJK, said) or ENGLISH_WORDS.search(said):
                        left.append(f"{rule.code}: {diagnostic.message}: {said}")
    assert left == []
