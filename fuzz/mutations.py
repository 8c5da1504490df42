"""Mutations of source text by lines and words, which reach further into a parser than those of bytes do."""

from __future__ import annotations

import random
import re
from typing import Callable

# What rules, scopes and readers look for; random bytes never spell it.
WORDS = '''
import tensorflow as tf|from tensorflow import keras|import tensorflow.compat.v1 as tf|tf.Session()|tf.estimator
from npu_shim.npu_init import *|import horovod.tensorflow as hvd|hvd.init()|hvd.rank()|tf.nn.dropout(x, 0.5)
tf.device('/gpu:0')|tf.data.Dataset.range(8).batch(4)|tf.keras.Sequential()|model.fit(x, y)|config=config
**kw|*args|lambda x: x|(yield x)|await x|x if y else z|[x for x in y]|(x for x in y)|{**x}|f'{x!r:>{y}}'
f"{f'{x}'}"|b'x'|r'\\'|"""|\'\'\'|'|"|(|)|[|]|{|}|,|:|;|=|:=|->|.|...|@x|*|**|/|//|%|%%time|!ls|?x|x?|\\|#|# npu: ignore
# -*- coding: latin-1 -*-|# type: int|async |with x:|for x in y:|while x:|try:|except X as e:|except* X:|finally:
else:|match x:|case [a, *b]:|case {"k": v, **r}:|case X(y=1) as z if z:|type X[T] = int|def f[T: int](x: T) -> T:
def f(a, /, b, *, c=1, **d):|class A(B, metaclass=C):|global x|nonlocal x|return x|raise X|assert x|pass
[tool.convert_tf2npu]|select = ["NPU1"]|jobs = 2|"cell_type": "code"|"source": |"cells": [|\\n|\\u0041|\\ud83d|null
'''
_PIECES = [word for line in WORDS.strip("\n").split("\n") for word in line.split("|") if word]
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_SPACES = [" ", "  ", "\t", "\n", "\r\n", "\r", "\x0c", " \\\n", " # c\n", "\n\n    ", ""]


def mutate(text: str, chance: random.Random) -> str:
    """One text made of another, a few steps away from it."""
    for _ in range(chance.randint(1, 3)):
        text = chance.choice(_STEPS)(text, chance)
    return text


def _lines(text: str, chance: random.Random) -> str:
    lines = text.splitlines(True)
    if len(lines) < 2:
        return text + text
    start = chance.randrange(len(lines))
    end = min(len(lines), start + chance.randint(1, 4))
    block = lines[start:end]
    kind = chance.randrange(5)
    if kind == 0:
        return "".join(lines[:start] + lines[end:])
    if kind == 1:
        at = chance.randrange(len(lines) + 1)
        return "".join(lines[:at] + block + lines[at:])
    if kind == 2:
        head = chance.choice(["if x:\n", "def f(a):\n", "class C:\n", "for i in x:\n", "try:\n", "with x:\n"])
        tail = "finally:\n    pass\n" if head == "try:\n" else ""
        return "".join(lines[:start] + [head] + ["    " + line for line in block] + [tail] + lines[end:])
    if kind == 3:
        return "".join(lines[:start]) + "".join(block).rstrip("\r\n") + chance.choice(_SPACES) + "".join(lines[end:])
    return "".join(lines[:start] + ["".join(block).replace("    ", chance.choice(["\t", "  ", " ", ""]))] + lines[end:])


def _tokens(text: str, chance: random.Random) -> str:
    tokens: list[str] = _TOKEN.findall(text)
    if not tokens:
        return chance.choice(_PIECES)
    at = chance.randrange(len(tokens))
    kind = chance.randrange(6)
    if kind == 0:
        tokens[at] = chance.choice(_PIECES)
    elif kind == 1:
        tokens.insert(at, chance.choice(_PIECES))
    elif kind == 2:
        tokens[at] = tokens[chance.randrange(len(tokens))]
    elif kind == 3:
        del tokens[at]
    elif kind == 4:
        tokens.insert(at, chance.choice(_SPACES))
    else:
        end = min(len(tokens), at + chance.randint(1, 8))
        tokens[at:end] = ["("] + tokens[at:end] + [")"]
    return "".join(tokens)


def _whole(text: str, chance: random.Random) -> str:
    kind = chance.randrange(4)
    if kind == 0:
        return text.replace("\n", chance.choice(["\r\n", "\r"]))
    if kind == 1:
        names = sorted(set(re.findall(r"\b[A-Za-z_]\w*\b", text)))
        if not names:
            return text
        return re.sub(rf"\b{chance.choice(names)}\b", chance.choice(names), text)
    if kind == 2:
        return text.rstrip("\n")
    return chance.choice(["\ufeff", "#!/usr/bin/env python\n", '"""d"""\n', "\x0c", "\n"]) + text


_STEPS: list[Callable[[str, random.Random], str]] = [_lines, _tokens, _tokens, _whole]
