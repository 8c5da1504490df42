"""Positions of AST nodes, compared with those of Pythons that report them.

Python 3.7 and 3.8 do not report (all of) them: there, the text at each position
is parsed again and has to give the same node.
"""

from __future__ import annotations

import ast
import io
import pathlib
import re
import sys
import sysconfig
import tokenize
from typing import Callable, Iterator, Optional, Tuple

import pytest
from convert_tf2npu.syntax.py37.node_ends import add_ends

_POSITION = ("lineno", "col_offset", "end_lineno", "end_col_offset")
_REPORTED = sys.version_info >= (3, 9)
# These are out of scope, Python 3.7 has none of them.
_UNTOUCHED = tuple(getattr(ast, name) for name in ("pattern", "type_param") if hasattr(ast, name))

Span = Tuple[Optional[int], ...]

EXPRESSIONS = '''
a
(a)
((a))
()
(())
((), ())
a,
(a,)
(a),
((a),)
((a, b))
(a), (b)
(a), b,
((a), (b),)
((a, b), c), d
*a, b
(*a, *b)
(a + b) * c
a + (b * c)
(a) + (b)
((a) + (b))
((a) + b) + c
-(a + b) ** -c
(-a) ** ~b
not (a)
not(a)or(b)
(not a) in b
a if (b) else (c)
(a) if b else c if (d) else e
(a if b else c) if d else e
a or (b and c) or d
(a or b) or c
a < b <= c is not d not in (e) is (not f) in g != h
(a < b) < c
a @ b @ (c)
a.b
(a).b.c
(a.b).c
(a)(b)(c)
(a(b))(c)
1 .real
1..real
1.5.real + 0x1F + 1_000 + 2j + .5
...
(...).a
a[b]
(a)[(b)]
a[b, c]
a[(b, c)]
a[b,]
a[(b), (c)]
a[(b,), c]
a[:]
a[::]
a[b:]
a[:b]
a[b:c:]
a[::b]
a[(b):(c):(d)]
a[b:c, d]
a[b, c:d, ...]
a[:, None]
a[::2, (b, c), -1:]
a[b:c,]
a[b][c](d)[e]
a[b[c:d]:e(f)]
a[lambda: b:c]
f()
f(())
f(a)
f((a))
f(a, b)
f((a, b))
f((a, b),)
f((a), (b))
f(a, *b, k=c, *d, **e)
f(*a, k=1, *b, **c)
f(k=1, *b)
f(**a, k=(1))
f(*(a), **(b))
f(*(a, b))
f(**{'a': b}, **(c or {}))
f(a == b, c=d == e)
f(k=(a, b), l=lambda x=1: (x, x), m=not a)
f(lambda x=1: x)
f(lambda: (a, b), k=lambda: (a))
f(x for x in y)
f((x for x in y))
f(((x for x in y)))
f((x) for x in (y))
f((x, y) for x, y in z)
f((x for x in y), z)
f((x for x in y), k=z)
f(*(x for x in y))
f(k=(x for x in y))
f((x for x in y) if a else b)
f((x for x in y)(z) for z in a)
f(x for x in y)(z)
(x for x in y)
((x) for (x) in (y) if (x) if y)
((x, y) for x in y for (y, z) in x if x)
(((x) + y for x in y))
(x for x in y).send(a)
(x async for x in y if (await x))
[x for x, in y]
[(x, y) for x, *y in z]
[x async for x in y]
[]
[a]
[(a)]
[(a, b), c,]
[[a], [(b)]]
{}
{a}
{(a), b,}
{*a, *(b)}
{a: b, **c, (d): (e), **(f)}
{a: b for a, b in c}
{(a): (b) for (a, b) in c if (a)}
{a for a in (b, c)}
{**a}
{a: lambda b: c, d: (e, f)}
lambda: 0
lambda: (a, b)
lambda *a, **b: (a)
lambda a, b=(1), *, c, d=lambda: (e): a
lambda a, *b, c=1: (yield)
lambda a,: a
(lambda: a)()
(yield)
(yield a, b)
(yield (a, b))
(yield (a), b)
(yield from (a))
((yield) + a)
await a
(await a).b
await (a.b)
(await (a))
-await a ** b
'a' 'b'
('a' 'b')
'a' % b
'a' 'b'.join(c)
f'{a}'
f'{a!r:>{b}}' 'c'
('a' f'{b}')
f(f'{f"{a}"}', k=f'{a:{b}}')
rb'a' + Rb"""b""" + u'c'
é.ü(ñ, 'ß', k='€') + '€€'[ö]
('€', 'a', "😀", b)
[a for é in (b, é) if é]
a\tand\t(\tb\t)
f(a)(b)(c).d(e)[f](g)
'''

SNIPPETS = '''
('a'
 'b').join(c)
---
"""a
b""" + c
---
("""a
b""", """c
d""")
---
"""
""".format("""
""", a)
---
(f"""
{a(b)} { {'c': (d, e)}[f'g'] }
""").h(f'{{}}')
---
a.b(
    c,  # a ( in a comment
    d=[e,
       f],
)[
    g
]
---
a + \\
  b(c) \\
  .d
---
(a
 + b
 )
---
a; b; (c)
---
a;
---
a = b = (c)
---
(a) = b
---
(a, b) = c, d = e
---
[a, (b)] = (*c, d)
---
a, = b
---
a += (b)
---
a @= b, c
---
(a).b **= yield
---
a: b
---
(a): b = (c)
---
a.b: c[d, e] = lambda: d
---
del a
---
del (a)
---
del (a, b), c[d],
---
del (a), (b)
---
assert a
---
assert (a), (b)
---
assert (a, b)
---
global a, b
---
import a.b as c, d
---
from a import (b as c,
               d)
---
from . import *; a
---
pass;
---
print((a, b), (c))
---
print(a), (b)
---
raise
---
raise (a) from (b)
---
for a in b: pass
else: c
---
for (a, b) in (c): d; e;
---
for a, b in c, d: continue
---
for (a), in (b, c), d: break
---
while (a): b
else:
    c;
---
if a: b
elif (c): d
elif e:
    f
else: g
---
if a: b
else:
    if c: d; e;
---
if(a)and(b):c
---
if a:
    b;
c
---
try: a
except: b
---
try:
    a
except (A, B) as e:
    b
except (C): d;
except E.f(g): h
else: i
finally: j
---
try: a
finally:
    b
---
with a: b
---
with (a): b
---
with (a) as b: c
---
with (a, b) as c, (d) as (e, f), g: h
---
with a(b) as c.d, e as f[g]:
    h
---
with (a(b)), (c): d
---
with (yield): a
---
with ((a, b)): c
---
def f(): return
---
def f(a, b: (c) = (d), *e: g, h, i=j, **k: l) -> (m): return (a, b)
---
def f(a=(b, c), *, d): return a, b
---
def f(*, a,): return (a), b
---
def f(a: 'b' 'c', *args, k: d=e): yield a, b
---
@a
@(a.b) if 0 else c
def f():
    """doc
    string"""
---
@a.b(c)  # comment

@d
async def f(a):
    async with a as b, (c): await d
    async for (e) in f: pass
    else: return [g async for g in h]
---
class A: pass
---
class A(): pass;
---
class A((B), C.d, metaclass=(E), *f, **g):
    h: i = j
    @k
    class L:
        \'\'\'doc
        string\'\'\'
        def m(self): return -1
---
@a
class A(B,):
    pass
---
"""doc
string"""
a
---
if a:
\t"""
€"""
\tb
\x0c
c(d)
---
if 1:
  a
# comment
---
x = (  # comment
  a
  # comment )
)
---
async def f(): return (await a), (yield b), [await (c)]
'''
if not (3, 12) <= sys.version_info < (3, 12, 2):
    # There, tokenize miscounts the columns behind such strings (CPython issue 112943).
    SNIPPETS += '---\nx["""€\né""", é]\n---\nf(é, """\n€""" + a, (é, b))\n'
    SNIPPETS += '---\n"""€\n"""; é = """\né"""; b\n'
if sys.version_info < (3, 9):
    SNIPPETS = SNIPPETS.replace("@(a.b) if 0 else c\n", "")  # only names, before 3.9
if sys.version_info >= (3, 8):
    EXPRESSIONS += "(a := b)\nf(a := (b), (c := d), k=(e := f))\n[(a) for b in c if (d := b)]\n"
    EXPRESSIONS += "lambda a, /, b: a\nlambda a, /: a\n"
    SNIPPETS += "---\ndef f(a, b=(c), /, d=e, *, g): pass\n---\ndef f(a, /,): return *a, (b)\n"
if _REPORTED:
    EXPRESSIONS += "a[b := c]\na[*b, c]\n" if sys.version_info >= (3, 11) else ""
    SNIPPETS += "---\nwith (a, b): c\n---\nwith (a as b, (c) as d,): e\n---\nwith (a,): b\n"
if sys.version_info >= (3, 11):
    SNIPPETS += "---\ntry: a\nexcept* (A, B) as c: d\n---\ndef f(*a: *b, c): d\n"
    SNIPPETS += '---\nmatch a, (b):\n  case {"c": [d]} | (E(f=1)) if (g): h\n  case _: i;\n'
if sys.version_info >= (3, 12):
    SNIPPETS += "---\ntype A[B: (C)] = (D)\n---\ndef f[A](a): b\n---\nclass A[B](C): d\n"


def _placed(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that have to be placed, without those inside of f-strings."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, _UNTOUCHED):
            continue
        if "lineno" in node._attributes and not isinstance(node, ast.alias):
            yield node
        if not isinstance(node, ast.JoinedStr):
            pending.extend(ast.iter_child_nodes(node))


def _span(node: ast.AST) -> Span:
    return tuple(getattr(node, name, None) for name in _POSITION)


def _lose_all(node: ast.AST) -> None:
    for name in _POSITION:
        if hasattr(node, name):
            delattr(node, name)


def _lose_ends(node: ast.AST) -> None:
    """Leave what Python 3.7 would report, its errors included."""
    kind = type(node).__name__
    if kind in ("GeneratorExp", "Tuple"):
        for child in [node.elt] if kind == "GeneratorExp" else node.elts[:1]:
            node.lineno, node.col_offset = child.lineno, child.col_offset
    elif getattr(node, "decorator_list", None):
        node.lineno = node.decorator_list[0].lineno
    elif kind in ("Constant", "JoinedStr") and _REPORTED and node.end_lineno != node.lineno:
        node.lineno, node.col_offset = node.end_lineno, -1
    for name in _POSITION[2:]:
        if hasattr(node, name):
            delattr(node, name)


class _Text:
    """Cuts out what lies between two positions."""

    def __init__(self, text: str) -> None:
        self._bytes = text.encode("utf-8")
        self._starts = [0] + [m.end() for m in re.finditer(b"\r\n?|\n", self._bytes)]

    def cut(self, node: ast.AST) -> str:
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        return self._bytes[start:end].decode("utf-8")

    def indentation(self, node: ast.AST) -> str:
        start = self._starts[node.lineno - 1]
        return self._bytes[start : start + node.col_offset].decode("utf-8")


def _dump(node: ast.AST) -> str:
    return re.sub(r"\b(Store|Del)\(\)", "Load()", ast.dump(node))


def _parse_again(node: ast.AST, text: _Text) -> tuple[str, str]:
    """The dump of a node, and that of its text."""
    code = text.cut(node)
    if isinstance(node, ast.expr):
        return _dump(node), _dump(ast.parse(f"({code}\n)", mode="eval").body)
    # Decorators lie outside of the position.
    if hasattr(node, "decorator_list"):
        node.decorator_list, decorators = [], node.decorator_list
        dumped = _dump(node)
        node.decorator_list = decorators
    else:
        dumped = _dump(node)
    # An elif is an if of its own.
    code = re.sub(r"\Aelif\b", "if", code)
    indentation = text.indentation(node)
    if indentation and not indentation.strip():
        return dumped, _dump(ast.parse(f"if 1:\n{indentation}{code}\n").body[0].body[0])
    return dumped, _dump(ast.parse(code + "\n").body[0])


def _check(text: str, damage: Callable[[ast.AST], None]) -> int:
    """Compare all positions; return how many."""
    tree = ast.parse(text)
    nodes = list(_placed(tree))
    truth = [_span(node) for node in nodes]
    for node in nodes:
        damage(node)
    add_ends(tree, text)
    if _REPORTED:
        wrong = [(node, _span(node), span) for node, span in zip(nodes, truth) if _span(node) != span]
        assert not wrong
        return len(nodes)
    cutter = _Text(text)
    for node in nodes:
        assert None not in _span(node), node
        if isinstance(node, (ast.expr, ast.stmt)) and not isinstance(node, ast.Starred):
            expected, actual = _parse_again(node, cutter)
            assert actual == expected
    return len(nodes)


@pytest.mark.parametrize("snippet", EXPRESSIONS.split("\n")[1:-1] + SNIPPETS[1:].split("---\n"))
def test_snippet(snippet: str) -> None:
    for newline in ("\n", "\r\n", "\r"):
        for damage in (_lose_all, _lose_ends):
            assert _check(snippet.replace("\n", newline), damage)


# The text at the position of a tuple parses to the same tuple with and without the
# parentheses, and so on: where the version does not report positions, only this
# table tells them apart.
EXACT: list[tuple[str, str, list[str]]] = [
    ("(a, b)", "Tuple", ["(a, b)"]),
    ("((a, b))", "Tuple", ["(a, b)"]),
    ("(a), (b)", "Tuple", ["(a), (b)"]),
    ("(a,), b,", "Tuple", ["(a,), b,", "(a,)"]),
    ("f(a, (b, c), (d))", "Tuple", ["(b, c)"]),
    ("f((a, b))", "Tuple", ["(a, b)"]),
    ("x[a, b], x[(a, b)]", "Tuple", ["x[a, b], x[(a, b)]", "a, b", "(a, b)"]),
    ("for (a, b) in (c, d): return (e), f", "Tuple", ["(a, b)", "(c, d)", "(e), f"]),
    ("with (a, b) as (c, d): pass", "Tuple", ["(a, b)", "(c, d)"]),
    ("try: a\nexcept (A, B) as e: b", "Tuple", ["(A, B)"]),
    ("del (a, b), (c)", "Tuple", ["(a, b)"]),
    ("lambda x=(1, 2): (a, b)", "Tuple", ["(1, 2)", "(a, b)"]),
    ("class A((B, C).d, e=(f, g)): pass", "Tuple", ["(B, C)", "(f, g)"]),
    ("f(x for x in y)", "GeneratorExp", ["(x for x in y)"]),
    ("f((x for x in y))", "GeneratorExp", ["(x for x in y)"]),
    ("f((x for x in y), k=1)", "GeneratorExp", ["(x for x in y)"]),
    ("f(((x) for x in (y)))", "GeneratorExp", ["((x) for x in (y))"]),
    ("(a).b((c), ((d)))", "Name", ["a", "c", "d"]),
    ("((a) + (b)) * c", "BinOp", ["((a) + (b)) * c", "(a) + (b)"]),
    ("(f(a))((b)(c))", "Call", ["(f(a))((b)(c))", "f(a)", "(b)(c)"]),
    ("f(*(a), k=(b), **(c))", "keyword", ["k=(b)", "**(c)"]),
    ("f(*(a), k=(b), *c)", "Starred", ["*(a)", "*c"]),
    ("def f(a: (b) = c, *d: e, g=h, **i): pass", "arg", ["a: (b)", "d: e", "g", "i"]),
    ("@a\n@b(c)\nclass A: pass", "ClassDef", ["class A: pass"]),
    ("@a\nasync def f(): pass", "AsyncFunctionDef", ["async def f(): pass"]),
    ("if a: b\nelif c: d;\n", "If", ["if a: b\nelif c: d;", "elif c: d;"]),
    ('x = """a\nb""" "c"; y', "Assign", ['x = """a\nb""" "c"']),
    ("(a); b;", "Expr", ["(a)", "b"]),
    ('f(f"""{a}\n""" "b")', "JoinedStr", ['f"""{a}\n""" "b"']),
    ('é = (ü, "€")', "Tuple", ['(ü, "€")']),
    ("try: a\nexcept B as c: d;\nfinally: e", "ExceptHandler", ["except B as c: d;"]),
]


@pytest.mark.parametrize("text, kind, expected", EXACT)
def test_exact_text(text: str, kind: str, expected: list[str]) -> None:
    tree = ast.parse(text)
    for node in _placed(tree):
        _lose_all(node)
    add_ends(tree, text)
    nodes = [node for node in ast.walk(tree) if type(node).__name__ == kind]
    assert sorted(map(_Text(text).cut, nodes)) == sorted(expected)


def test_all_of_an_fstring_lies_at_the_fstring() -> None:
    text = 'a = (f"""x{b(c, k=d)[0]:{e}}"""\n     "f") + g'
    tree = ast.parse(text)
    add_ends(tree, text)
    fstring = next(node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr))
    inner = [node for node in ast.walk(fstring) if isinstance(node, (ast.expr, ast.keyword))]
    assert len(inner) > 6
    assert {_span(node) for node in inner} == {(1, 5, 2, 8)}


def test_shared_nodes_stay_without_position() -> None:
    tree = ast.parse('f"{a}"[b]')
    add_ends(tree, 'f"{a}"[b]')
    assert not hasattr(ast.parse("a").body[0].value.ctx, "lineno")


def test_long_chains_need_no_recursion() -> None:
    for text in ("a" + " + a" * 600, "a" + ".b(c)[d]" * 150):
        tree = ast.parse(text)
        add_ends(tree, text)
        assert _span(tree.body[0].value) == (1, 0, 1, len(text))


@pytest.mark.parametrize(
    "code, text",
    [
        ("f(a)", "f(a, b)"),
        ("f(a, b)", "f(a)"),
        ("f(k=a)", "f(a)"),
        ("f(a)", "f(k=a)"),
        ("a", "a b"),
        ("a + b", "a"),
        ("pass", "pass; a"),
        ("a", ""),
        ("def f(): a", "a"),
    ],
)
def test_a_tree_of_another_text_is_refused(code: str, text: str) -> None:
    with pytest.raises(ValueError, match="does not belong"):
        add_ends(ast.parse(code), text)


def _library_texts() -> Iterator[str]:
    """A fixed choice of the modules that come with this Python."""
    root = pathlib.Path(sysconfig.get_paths()["stdlib"])
    packages = [path for path in root.glob("*/*.py") if path.parent.name != "site-packages"]
    # Where each piece of text is parsed again, a file takes several times as long.
    step = 6 if _REPORTED else 24
    for path in sorted(root.glob("*.py"))[::step] + sorted(packages)[:: 10 * step]:
        try:
            with tokenize.open(str(path)) as file:
                text = file.read()
            ast.parse(text)
        except (SyntaxError, UnicodeDecodeError):
            continue  # some tests of Python itself are no legal source
        if not _quotes_itself(text):
            yield text


def _quotes_itself(text: str) -> bool:
    """Return True if an f-string holds quotes of its own kind, which no Python before 3.12 can read."""
    around: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline) if sys.version_info >= (3, 12) else ():
        kind = tokenize.tok_name[token.type]
        if kind in ("STRING", "FSTRING_START") and any(quote in token.string for quote in around):
            return True
        if kind == "FSTRING_START":
            around.append(token.string.lstrip("fFrR"))
        elif kind == "FSTRING_END":
            around.pop()
    return False


def test_standard_library() -> None:
    assert sum(_check(text, _lose_all) for text in _library_texts()) > 5000
