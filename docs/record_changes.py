"""Changes of a conversion that are needless or wrong, counted by the same rules for every migration tool.

The rules read original and converted files only, and docs/record.md lists them. A change whose fault these files do
not show counts as right.
"""

from __future__ import annotations

import ast
import difflib
import io
import os
import re
import tokenize
from collections import Counter
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

LAYOUT, COMMENTS, IMPORTS = "lines without a change of code", "comments and docstrings lost", "unused imports"
RUN_BITS, LINE_ENDS = "run bits lost", "files with other line ends"
EVALUATION, COMPUTED = "batches of evaluation cut", "computed drop_remainder replaced"
TWICE, DEVICE = "arguments given twice", "device functions or None replaced"
DANGLING, SHARD = "names without their import", "shard of the user replaced"
KINDS = {  # and their Chinese names
    EVALUATION: "评估数据的最后一批被丢弃",
    COMPUTED: "由程序计算的 drop_remainder 被替换",
    TWICE: "同一参数给出两次",
    DEVICE: "设备函数或 None 被替换",
    DANGLING: "名称失去导入",
    SHARD: "用户的 shard 被替换",
    LAYOUT: "代码不变的行",
    COMMENTS: "丢失的注释和文档字符串",
    IMPORTS: "未使用的导入",
    RUN_BITS: "丢失的可执行位",
    LINE_ENDS: "行尾改变的文件",
}
WRONG, NEEDLESS = list(KINDS)[:6], list(KINDS)[6:]

_PACKAGES = "npu_bridge", "npu_device", "npu_shim"
_ACTS_BY_IMPORT = "npu_convert_dropout"
_TRAINING = {"train", "training"}
_EVALUATION = set("eval evaluate evaluation val valid validation test testing dev".split())
_EVALUATION |= set("predict prediction predictions infer inference".split())
_BATCHES = "batch", "map_and_batch", "padded_batch"
_PARAMETERS = {  # that a tool adds, and the number of positional arguments before them
    "batch": ("drop_remainder", 1),
    "map_and_batch": ("drop_remainder", 3),
    "device": ("device_name_or_function", 0),
    "Estimator": ("config", 2),
    "TPUEstimator": ("config", 2),
}
_NO_CODE = tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER


class Changes(NamedTuple):
    """The changes of a conversion.

    Attributes:
        lines: that are changed.
        kinds: the numbers of those that are needless or wrong, by kind.
    """

    lines: int
    kinds: Mapping[str, int]


def text_of(path: str) -> str:
    """Return the text of a file."""
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read()


def count(before: str, after: str, paths: Sequence[str], script: str, is_distributed: bool) -> Changes:
    """Count the changes of a conversion. Those of a file that does not parse are not known.

    Args:
        before, after: folders.
        paths: of the files in both.
        script: the entry script among them.
        is_distributed: True if the conversion was asked for distributed training.
    """
    lines, kinds = 0, _counter()
    for path in paths:
        places = [os.path.join(folder, path) for folder in (before, after)]
        texts = [open(place, "rb").read() for place in places]
        if texts[0] == texts[1]:
            continue
        kinds[RUN_BITS] += bool(os.stat(places[0]).st_mode & ~os.stat(places[1]).st_mode & 0o100)
        kinds[LINE_ENDS] += (b"\r\n" in texts[0]) != (b"\r\n" in texts[1])
        try:
            old, new = (_Source(text_of(place)) for place in places)
        except (SyntaxError, tokenize.TokenError):
            continue
        changed, layout = _changed_lines(old, new)
        lines += changed
        kinds[LAYOUT] += layout
        kinds[COMMENTS] += sum((old.comments - new.comments).values())
        kinds[IMPORTS] += 0 if path == script else _unused_imports(old, new)
        kinds.update(_wrong(old, new, is_distributed))
    return Changes(lines, {kind: kinds[kind] for kind in KINDS if kinds[kind]})


def _counter() -> Counter[str]:
    return Counter()


# --- files -------------------------------------------------------------------------------------------------------
class _Source:
    """A file: its lines, statements, comments, calls and names."""

    def __init__(self, text: str) -> None:
        self.lines, tree = text.splitlines(), ast.parse(text)
        self.statements, self.comments = _statements(text)
        self.calls = list(_calls(tree, ()))
        self.imports: list[ast.Import | ast.ImportFrom] = []
        self.loads = _counter()
        self.bound: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self.imports.append(node)
                self.bound.update(alias.asname or alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.loads[node.id] += 1
            elif isinstance(node, ast.Name):
                self.bound.add(node.id)
            elif isinstance(node, ast.arg):
                self.bound.add(node.arg)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self.bound.add(node.name)
                self.comments.update(filter(None, [ast.get_docstring(node)]))


def _statements(text: str) -> tuple[list[tuple[Any, int, int]], Counter[str]]:
    """Return the code of each logical line with its first and last row, and the comments."""
    statements, comments, code, depth = [], _counter(), [], 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        depth += (token.type == tokenize.INDENT) - (token.type == tokenize.DEDENT)
        if token.type == tokenize.COMMENT:
            comments[token.string.strip()] += 1
        elif token.type not in _NO_CODE:
            code.append(token)
        if token.type == tokenize.NEWLINE:
            words = tuple(_value(token.string) if token.type == tokenize.STRING else token.string for token in code)
            statements.append(((depth, words), code[0].start[0], token.start[0]))
            code = []
    return statements, comments


def _value(text: str) -> str:
    try:
        return repr(ast.literal_eval(text))
    except (SyntaxError, ValueError):  # an f-string
        return text


def _calls(node: ast.AST, names: tuple[str, ...]) -> Iterator[tuple[ast.Call, tuple[str, ...]]]:
    """Yield the calls below a node, each before those in it, with the names of the target and the functions around."""
    if isinstance(node, ast.Assign):
        names = (*(target.id for target in node.targets if isinstance(target, ast.Name)), *names)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        names = (node.name, *names)
    elif isinstance(node, ast.Call):
        yield node, names
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, names)


def _name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _pairs(old: _Source, new: _Source, *names: str) -> Iterator[tuple[ast.Call, ast.Call, tuple[str, ...]]]:
    """Yield the calls of some names in both files, if each has as many of them, and the names around the call."""
    for name in names:
        before, after = ([pair for pair in source.calls if _name(pair[0]) == name] for source in (old, new))
        if len(before) == len(after):
            yield from ((call, converted, around) for (call, around), (converted, _) in zip(before, after))


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _literal(node: ast.expr | None) -> Any:
    """Return the value of a literal, Ellipsis for other code."""
    try:
        return ast.literal_eval(node) if node else ...
    except ValueError:
        return ...


def _dump(*nodes: ast.AST | None) -> list[str]:
    return [ast.dump(node) if node else "" for node in nodes]


# --- needless ----------------------------------------------------------------------------------------------------
def _changed_lines(old: _Source, new: _Source) -> tuple[int, int]:
    """Return the number of changed lines, and of those that belong to no changed statement."""
    keys = [[code for code, _, _ in source.statements] for source in (old, new)]
    changed_rows: list[set[int]] = [set(), set()]
    for tag, *ranges in difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes():
        for rows, source, (begin, end) in zip(changed_rows, (old, new), (ranges[:2], ranges[2:])):
            for _, first, last in source.statements[begin:end] if tag != "equal" else []:
                rows.update(range(first, last + 1))
    lines = layout = 0
    for tag, *ranges in difflib.SequenceMatcher(None, old.lines, new.lines, autojunk=False).get_opcodes():
        if tag != "equal":
            hunks = [range(begin + 1, end + 1) for begin, end in (ranges[:2], ranges[2:])]
            length = max(len(hunk) for hunk in hunks)
            lines += length
            layout += length - max(len(rows.intersection(hunk)) for rows, hunk in zip(changed_rows, hunks))
    return lines, layout


def _unused_imports(old: _Source, new: _Source) -> int:
    """Return the number of added imports of an NPU package of which no name is used."""
    known, used = set(_dump(*old.imports)), new.loads - old.loads
    unused = 0
    for node in new.imports:
        module = getattr(node, "module", None) or node.names[0].name
        if module.split(".")[0] in _PACKAGES and ast.dump(node) not in known:
            names = [alias.asname or alias.name for alias in node.names]
            is_used = (
                bool(used) if names == ["*"] else any(name in new.loads or name == _ACTS_BY_IMPORT for name in names)
            )
            unused += not is_used
    return unused


# --- wrong -------------------------------------------------------------------------------------------------------
def _wrong(old: _Source, new: _Source, is_distributed: bool) -> Counter[str]:
    kinds = _counter()
    for call, converted, around in _pairs(old, new, *_BATCHES):
        if _literal(_keyword(converted, "drop_remainder")) is True and not _drops(call):
            given = _keyword(call, "drop_remainder")
            if given and _literal(given) is ...:
                kinds[COMPUTED] += 1
            elif _is_evaluation(around) and _batch_size(call) != 1:
                kinds[EVALUATION] += 1
    for call, converted, _ in _pairs(old, new, "shard"):
        kinds[SHARD] += _dump(*call.args) != _dump(*converted.args) and not is_distributed
    for call, converted, _ in _pairs(old, new, "device"):
        if call.args and _dump(*call.args) != _dump(*converted.args) and _is_no_device_name(call.args[0]):
            kinds[DEVICE] += 1
    before = {ast.dump(call) for call, _ in old.calls}
    for converted, _ in new.calls:
        parameter, place = _PARAMETERS.get(_name(converted), ("", 0))
        if len(converted.args) > place and _keyword(converted, parameter) and ast.dump(converted) not in before:
            kinds[TWICE] += not any(isinstance(argument, ast.Starred) for argument in converted.args)
    kinds[DANGLING] = len((old.bound - new.bound) & set(new.loads))
    return kinds


def _drops(call: ast.Call) -> bool:
    """Return True if a call drops the last partial batch by a literal."""
    return _literal(_keyword(call, "drop_remainder")) is True or any(_literal(node) is True for node in call.args)


def _batch_size(call: ast.Call) -> Any:
    place = 1 if _name(call) == "map_and_batch" else 0
    return _literal(_keyword(call, "batch_size") or (call.args[place] if len(call.args) > place else None))


def _is_evaluation(around: Sequence[str]) -> bool:
    """Return True if the innermost name that speaks of training or evaluation speaks of evaluation only."""
    for name in around:
        words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
        if words & (_EVALUATION | _TRAINING):
            return not words & _TRAINING
    return False


def _is_no_device_name(node: ast.expr) -> bool:
    is_setter = isinstance(node, ast.Call) and _name(node).endswith("setter")
    return is_setter or isinstance(node, ast.Lambda) or _literal(node) is None
