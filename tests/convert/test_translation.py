"""The tool's messages, help and reports in Chinese: the catalogue is complete, and JSON and SARIF stay English."""

from __future__ import annotations

import ast
import io
import os
import pathlib
import re
import subprocess
import sys

import pytest
from convert_tf2npu.cli.language_option import language_of_command_line, use_utf8_if_needed
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.files.message import Message
from convert_tf2npu.main import main
from convert_tf2npu.report import explanation
from convert_tf2npu.report.language import ENGLISH
from convert_tf2npu.report.translation import read_catalogue, wrap_text
from convert_tf2npu.rules.registry import Registry

from tests.convert.english_texts import FOLDER, everything, finished, finished_in, messages, messages_in

pytestmark = pytest.mark.once

ENTRIES = read_catalogue("zh")
CHINESE = language_of_command_line(["--language", "zh"], {})
CJK = r"[\u4e00-\u9fff]"
ENGLISH_WORDS = re.compile(r"\b(?:the|of|this|its|are|which|may|cannot|each|without|has|have)\b", re.IGNORECASE)
WORD = re.compile(r"[A-Za-z][A-Za-z]+")
NAME = re.compile(r"NPU\d+|(?<![\w-])--?[a-z][\w-]*|\w*[._=]\w[\w.=]*(?<!\.)|\b[a-z]+[A-Z]\w+")
# English terms in Chinese texts where the English text has another form of the word.
TERMS = {"dropout", "feed", "loss", "scale", "summary"}


def test_each_message_has_a_translation() -> None:
    missing = [f"{file}: {key}" for key, file in messages().items() if key not in ENTRIES]
    assert missing == [] and len(ENTRIES) > 900


def test_each_message_keeps_its_template() -> None:
    """A sentence is a :class:`Message`, not an f-string."""
    assert finished() == []


@pytest.mark.parametrize(
    "source,missing,untemplated",
    [
        ('Finding(node, f"{short} works on a TPU only. {advice}")', 0, 1),
        ('Finding(node, "{0} works on a TPU only. {1}", short, advice)', 0, 0),
        ('Finding(node, "{0} works on no TPU. {1}", short, advice)', 1, 0),
        ('Message("{0} and words" if many else "{0}, {1}", many, 1)', 1, 0),
        ('_SMI = "%s asks for NVIDIA GPUs. Use npu-smi info"', 1, 0),
        ('fix = "Remove it" + where', 0, 1),
        ('fix = "training and evaluation".upper()', 0, 1),
        ('fix = "Reword this text"', 1, 0),
    ],
)
def test_a_reworded_or_finished_message_is_found(source: str, missing: int, untemplated: int) -> None:
    tree = ast.parse(source)
    assert len(set(messages_in(tree, "rules/a.py")) - set(ENTRIES)) == missing
    assert len(list(finished_in(tree, "rules/a.py"))) == untemplated


def test_no_translation_is_stale() -> None:
    assert sorted(set(ENTRIES) - everything()) == []


@pytest.mark.parametrize("what", ["values", "names"])
def test_values_codes_options_and_names_agree(what: str) -> None:
    pattern = re.compile(r"(?<!\{)\{\d+\}") if what == "values" else NAME
    found = []
    for key, text in ENTRIES.items():
        ours, theirs = (set(pattern.findall(each)) for each in (text, key))
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
        convert = Converter(Settings(select=(rule.code,), **rule.needed_settings)).convert
        heading = ""
        for block in explanation.doc_blocks(rule.doc):
            heading = block.text if block.kind == "heading" else heading
            if block.kind == "code":
                path = "serve.sh" if heading.endswith("another file") else ""
                for diagnostic in convert(block.text.encode(), path).diagnostics:
                    said = CHINESE(diagnostic.message)
                    if not re.search(CJK, said) or ENGLISH_WORDS.search(said):
                        left.append(f"{rule.code}: {diagnostic.message}: {said}")
    assert left == []


def test_a_value_of_one_word_is_a_name_and_stays() -> None:
    """A variable may have the name of a word that the catalogue has, such as error."""
    assert "error" in ENTRIES and "training" in ENTRIES
    of_name = Message("the name {0}", "error")
    assert CHINESE(Message("this dataset feeds {0} (see {1})", Message("training"), of_name)) == (
        "该数据集用于训练（见名称 error）"
    )
    assert CHINESE("no such message") == CHINESE(Message("no such message")) == "no such message"
    assert CHINESE(Message("{0}: {1}", "a b.py", "Is a directory")) == "a b.py: 是一个目录"
    assert CHINESE(Message("pass {0}={1}", "{x}", 1).as_sentence()) == "传入 {x}=1"


@pytest.mark.parametrize(
    "arguments,environment,chinese",
    [
        ([], {}, False),
        ([], {"LANG": "zh_CN.UTF-8"}, True),
        ([], {"LANG": "zh_CN.UTF-8", "LC_ALL": ""}, True),
        ([], {"LANG": "zh_CN.GBK", "LC_MESSAGES": "en_US.UTF-8"}, False),
        ([], {"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN"}, True),
        ([], {"LC_ALL": "C.UTF-8", "LC_MESSAGES": "zh_CN", "LANG": "zh_CN"}, False),
        (["--language", "en"], {"LANG": "zh_CN.UTF-8"}, False),
        (["a.py", "--language=zh"], {"LC_ALL": "C"}, True),
        (["--language=zh", "--language", "en"], {}, False),
        (["--language"], {"LANG": "zh_CN"}, True),
        (["--language=fr"], {"LANG": "zh_CN"}, False),
    ],
)
def test_the_option_then_the_locale_choose(arguments: list[str], environment: dict[str, str], chinese: bool) -> None:
    assert (language_of_command_line(arguments, environment) is not ENGLISH) is chinese


def test_an_output_in_ascii_writes_utf_8_for_chinese() -> None:
    for arguments, written in ([], b"?"), (["--language", "zh"], "算子".encode()):
        output = io.BytesIO()
        stream = io.TextIOWrapper(output, encoding="ascii", errors="replace", write_through=True)
        use_utf8_if_needed(language_of_command_line(arguments, {}), stream, io.StringIO())
        stream.write("算子" if arguments else "é")
        assert output.getvalue() == written


SCRIPT = """import tensorflow as tf

x = tf.placeholder(tf.float32, [None, 4], name="x")
with tf.device("/gpu:0"):
    y = tf.nn.dropout(x, keep_prob=0.5)
with tf.Session() as sess:
    sess.run(y)
"""


@pytest.fixture
def source(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "src" / "old.py").write_text("print 'x'\n", encoding="utf-8")
    return tmp_path / "src"


def test_files_for_programs_stay_english(source: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, shown = {}, ""
    for name in ("en", "zh"):
        reports = source.parent / name
        assert main([str(source), "--check", "-v", "--statistics", "-r", str(reports), "--language", name]) == 2
        made[name] = {path.suffix: path.read_text(encoding="utf-8") for path in reports.iterdir()}
        shown = capsys.readouterr().out
    assert "2 个 Python 文件，1 个已改动，1 个无法读取；3 处改写" in shown
    assert made["en"][".json"] == made["zh"][".json"] and made["en"][".sarif"] == made["zh"][".sarif"]
    assert not re.search(CJK, "".join(made["en"].values()))
    page = made["zh"][".html"]
    assert '<html lang="zh-CN">' in page and "data-words=" in page and "data-words=" not in made["en"][".html"]
    for text in (shown, made["zh"][".txt"], re.sub(r"(?s)<(style|script|pre).*?</\1>|<[^>]*>", "", page)):
        text = text.replace(str(source.parent), "")
        assert re.search(CJK, text) and not ENGLISH_WORDS.search(text), ENGLISH_WORDS.search(text)
    assert "无法读取，未转换：不是 Python" in made["zh"][".txt"]


@pytest.mark.parametrize(
    "arguments,expected",
    [
        (["--frob"], "错误: 未知选项 '--frob'。请用 --help 列出选项"),
        (["--tf", "3", "a.py"], "错误: 参数 --tf：无效的取值"),
        (["-j", "0", "a.py"], "错误: 参数 -j/--jobs：'0' 不是进程数。请给出 1 到 1024"),
        ([], "错误: 缺少输入。请给出脚本、notebook 或文件夹"),
        (["no.py"], "错误: 找不到文件或文件夹：no.py"),
        (["--explain", "NPU10"], "错误: 没有规则 NPU10。您指的是 NPU100, NPU101, NPU102 吗？"),
        (["--ignore", "XYZ", "a.py"], "错误: 参数 --ignore：没有规则 XYZ。请用 --list-rules 列出所有规则"),
    ],
)
def test_errors_are_chinese(
    arguments: list[str],
    expected: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    try:
        code = main(arguments)
    except SystemExit as error:
        code = error.code
    assert code == 2
    assert capsys.readouterr().err.startswith("convert_tf2npu: " + expected)


def test_help_and_explanations_are_chinese(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for arguments in (["--help"], ["--list-rules"]):
        try:
            main([*arguments, "--language", "zh"])
        except SystemExit as error:
            assert not error.code
    main(["--explain", "NPU109", "--language", "zh"])
    text = capsys.readouterr().out
    assert text.startswith("用法：") and not ENGLISH_WORDS.search(text)
    assert "NPU109: 使训练的 batch 大小为静态。" in text and "\n修改前：\n" in text


def test_a_run_in_english_reads_no_catalogue(source: pathlib.Path) -> None:
    """Nor does it load what translates."""
    program = (
        "import sys\nfrom convert_tf2npu.main import main\nmain(sys.argv[1:])\n"
        "assert 'convert_tf2npu.cli.commands' in sys.modules\n"
        "assert not [n for n in sys.modules if n.endswith(('report.translation', 'cli.wide_help'))]"
    )
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(FOLDER.parent)}
    subprocess.run(
        [sys.executable, "-c", program, "-i", str(source), "--check", "--no-cache"],
        env=environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )


def test_lines_break_between_letters_but_not_before_punctuation() -> None:
    assert wrap_text("训练和评估，使用 tf.data 来写。", 10) == ["训练和评", "估，使用", "tf.data 来", "写。"]
    assert wrap_text("一二三四五，六", 10) == ["一二三四", "五，六"]
