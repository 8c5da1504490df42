"""Positions of AST nodes for Python 3.7, as Python 3.9+ reports them.

The converter edits source text between the start and the end of a node.
Python 3.7 has no ``end_lineno`` / ``end_col_offset``, and several of its start
positions are wrong (multi-line strings, parenthesised tuples, decorated
definitions, ...).  Patching each quirk would leave the unknown ones, so
`add_ends` reads no position of the tree at all: the tree says which node comes
next, the token stream says where it is, and one walk over both, in source
order, places every node in linear time.

The only real ambiguity is which node a parenthesis belongs to.  It belongs to
the innermost node that it encloses exactly: ``(a)`` to the name in ``(a) + b``,
``(a + b)`` to the sum in ``(a + b) * c``.  A node may claim only a '(' that was
reached while walking that node; the '(' of a call, which the call consumes
before it walks its arguments, cannot be taken for one around an argument.

Syntax newer than 3.7 is supported too, so that the result can be compared with
the positions of newer Pythons; merely the insides of ``match`` patterns and of
type parameter lists keep the positions they have, and f-strings that hold their
own quotes are not understood.
"""

from __future__ import annotations

import ast
from typing import Any, Callable

from .tokens import OPENING, STRING, Tokens

# What may stand between a node and the next expression.  None of these can begin
# an expression, so they are skipped without asking which construct they are in.
_BEFORE_EXPR = frozenset(
    ", : = := -> @ / ** and or if else for in async as from with += -= *= /= //= %= @= &= |= ^= >>= <<= **=".split()
) | {"\n"}
_BEFORE_STMT = frozenset({"\n", ";", ":", "else", "finally"})
_BEFORE_PARAMETER = frozenset({",", "*", "**", "/"})
# A trailing comma, and the last of the parameters: (a, /), or (a, /,).
_BEFORE_CLOSE = frozenset({",", "/"})
_STATEMENT_END = frozenset({"\n", ";"})
_STRINGS = frozenset({STRING})

# Nodes that begin with a child, and that child.
_LEFTMOST = {
    "Attribute": "value",
    "BinOp": "left",
    "BoolOp": "values",
    "Call": "func",
    "Compare": "left",
    "GeneratorExp": "elt",
    "IfExp": "body",
    "NamedExpr": "target",
    "Subscript": "value",
    "Tuple": "elts",
}
# Nodes whose own text includes one pair of the parentheses around them.
_OWN_PARENTHESES = frozenset({"GeneratorExp", "Tuple"})
# The children (but for the leftmost one of above), in source order, of the nodes that
# need no code of their own to find them.
_LOOP = "target iter body orelse"
_TRY = "body handlers orelse finalbody"
_CHILDREN = {
    kind: fields.split()
    for kind, fields in {
        "AnnAssign": "target annotation value",
        "Assert": "test msg",
        "Assign": "targets value",
        "AsyncFor": _LOOP,
        "AugAssign": "target value",
        "Await": "value",
        "Delete": "targets",
        "DictComp": "key value generators",
        "Expr": "value",
        "For": _LOOP,
        "GeneratorExp": "generators",
        "If": "test body orelse",
        "IfExp": "test orelse",
        "Lambda": "args body",
        "List": "elts",
        "ListComp": "elt generators",
        "Match": "subject cases",
        "Module": "body",
        "NamedExpr": "value",
        "Raise": "exc cause",
        "Return": "value",
        "Set": "elts",
        "SetComp": "elt generators",
        "Starred": "value",
        "Try": _TRY,
        "TryStar": _TRY,
        "UnaryOp": "operand",
        "While": "test body orelse",
        "Yield": "value",
        "YieldFrom": "value",
        "comprehension": "target iter ifs",
        "withitem": "context_expr optional_vars",
    }.items()
}
_EXPR_FIRST = frozenset({"AnnAssign", "Assign", "AugAssign", "Expr"})
_COMPOUND = frozenset(
    "AsyncFor AsyncFunctionDef AsyncWith ClassDef For FunctionDef If Match Try TryStar While With".split()
)


def add_ends(tree: ast.Module, text: str) -> None:
    """Set start and end of every statement, expression, argument and keyword.

    *tree* is the result of ``ast.parse(text)``; *text* has no byte order mark.
    Columns are UTF-8 byte offsets.  All that is inside an f-string gets the
    position of the f-string.

    Raises ValueError if *tree* and *text* do not belong together.
    """
    _Walker(Tokens(text)).walk_module(tree)


class _Walker:
    """Walks tree and tokens side by side; ``at`` is the next token to consume."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens, self.match = tokens.strings, tokens.match
        self.starts, self.ends = tokens.starts, tokens.ends
        self.at = 0

    def walk_module(self, tree: ast.Module) -> None:
        try:
            self.walk_children(tree)
            self.skip(_BEFORE_STMT)
            self.require_in_step(self.at == len(self.tokens) - 1)
        except (IndexError, StopIteration):
            self.require_in_step(False)

    def require_in_step(self, in_step: bool) -> None:
        """Better no positions than wrong ones: text is replaced at them."""
        if not in_step:
            raise ValueError("the syntax tree does not belong to this text")

    def skip(self, unwanted: frozenset[str]) -> None:
        while self.tokens[self.at] in unwanted:
            self.at += 1

    def set_position(self, node: Any, first: int) -> None:
        """The node begins with token *first* and ends with the one before ``at``."""
        node.lineno, node.col_offset = self.starts[first]
        node.end_lineno, node.end_col_offset = self.ends[self.at - 1]

    def enter_brackets(self) -> int:
        """Go into brackets; return where they end."""
        self.at += 1
        return self.match[self.at - 1]

    def leave_brackets(self, end: int) -> None:
        self.skip(_BEFORE_CLOSE)
        self.require_in_step(self.at == end)
        self.at += 1

    def walk_children(self, node: ast.AST) -> None:
        for field in _CHILDREN[type(node).__name__]:
            value = getattr(node, field)
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.expr):
                    self.place_expression(child)
                elif isinstance(child, ast.stmt):
                    self.place_statement(child)
                elif child is not None:
                    _PARTS.get(type(child).__name__, _Walker.walk_children)(self, child)

    # Expressions.

    def place_expression(self, node: ast.expr) -> None:
        """Place an expression; ``at`` ends up behind it and its parentheses."""
        tokens, match = self.tokens, self.match
        self.skip(_BEFORE_EXPR)
        start = self.at
        # A loop down the left edge, not recursion: sums of many strings and
        # chains of method calls can be very deep there.
        outer: list[ast.expr] = []
        kind = type(node).__name__
        while kind in _LEFTMOST:
            child = getattr(node, _LEFTMOST[kind])
            if isinstance(child, list):
                if not child:
                    break
                child = child[0]
            outer.append(node)
            node = child
            kind = type(node).__name__
        while tokens[self.at] == "(" and match[self.at] != self.at + 1:
            self.at += 1
        first = self.at
        _HEADS.get(kind, _Walker.walk_atom)(self, node)
        while True:
            self.set_position(node, first)
            while first > start and match[self.at] == first - 1:
                first -= 1
                self.at += 1
            if not outer:
                return
            node = outer.pop()
            kind = type(node).__name__
            _TAILS.get(kind, _Walker.walk_children)(self, node)
            if kind in _OWN_PARENTHESES and first > start and match[self.at] == first - 1:
                first -= 1
                self.at += 1

    # Heads: expressions that begin with a token of their own.

    def walk_atom(self, node: ast.expr) -> None:
        self.at += 1
        if self.tokens[self.at - 1] == STRING:
            self.skip(_STRINGS)

    def walk_fstring(self, node: ast.JoinedStr) -> None:
        first = self.at
        self.walk_atom(node)
        for inner in ast.walk(node):
            # Not on every node: the likes of Load() are shared by all trees.
            if isinstance(inner, (ast.expr, ast.arg, ast.keyword)):
                self.set_position(inner, first)

    def walk_after_prefix(self, node: ast.expr) -> None:
        self.at += 1
        self.walk_children(node)

    def walk_bracketed(self, node: ast.expr) -> None:
        end = self.enter_brackets()
        self.walk_children(node)
        self.leave_brackets(end)

    def walk_dict(self, node: ast.Dict) -> None:
        end = self.enter_brackets()
        for key, value in zip(node.keys, node.values):
            if key is not None:
                self.place_expression(key)
            self.place_expression(value)
        self.leave_brackets(end)

    def skip_empty_tuple(self, node: ast.Tuple) -> None:
        self.at += 2

    # Tails: what follows the leftmost child of an expression.

    def skip_attribute(self, node: ast.Attribute) -> None:
        self.at += 2

    def walk_binary(self, node: ast.BinOp) -> None:
        self.at += 1
        self.place_expression(node.right)

    def walk_boolean(self, node: ast.BoolOp) -> None:
        for value in node.values[1:]:
            self.place_expression(value)

    def walk_compare(self, node: ast.Compare) -> None:
        for operator, right in zip(node.ops, node.comparators):
            self.at += 2 if isinstance(operator, (ast.IsNot, ast.NotIn)) else 1
            self.place_expression(right)

    def walk_tuple(self, node: ast.Tuple) -> None:
        for element in node.elts[1:]:
            self.place_expression(element)
        if self.tokens[self.at] == ",":
            self.at += 1

    def walk_call(self, node: ast.Call) -> None:
        end = self.match[self.at]
        if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
            # f(x for x in y): the parentheses of the call are the generator's too.
            # Those of f((x for x in y), k=1) are not, and it does not claim them.
            self.place_expression(node.args[0])
            if self.at > end:
                return
            self.walk_arguments([], node.keywords)
        else:
            self.at += 1
            self.walk_arguments(node.args, node.keywords)
        self.leave_brackets(end)

    def walk_arguments(self, args: list[ast.expr], keywords: list[ast.keyword]) -> None:
        """Arguments of a call or a class; keywords may precede *args."""
        tokens = self.tokens
        args_left, keywords_left = iter(args), iter(keywords)
        for _ in range(len(args) + len(keywords)):
            if tokens[self.at] == ",":
                self.at += 1
            first = self.at
            # Python 3.7 accepts f((k)=1).
            name_end = self.match[first] if tokens[first] == "(" else first
            if tokens[name_end + 1] == "=":
                self.at = name_end + 1
            elif tokens[first] != "**":
                self.place_expression(next(args_left))
                continue
            keyword = next(keywords_left)
            self.place_expression(keyword.value)
            self.set_position(keyword, first)

    def walk_subscript(self, node: ast.Subscript) -> None:
        end = self.enter_brackets()
        self.walk_index(node.slice)
        self.leave_brackets(end)

    def walk_index(self, node: Any) -> None:
        """Find the end of the contents of a subscript; slices are no expressions before Python 3.9."""
        first = self.at
        kind = type(node).__name__
        if kind == "Index":
            self.place_expression(node.value)
        elif kind == "Slice":
            if node.lower is not None:
                self.place_expression(node.lower)
            self.at += 1
            if node.upper is not None:
                self.place_expression(node.upper)
            if self.tokens[self.at] == ":":
                self.at += 1
            if node.step is not None:
                self.place_expression(node.step)
            self.set_position(node, first)
        elif kind == "ExtSlice":
            self.walk_dimensions(node, node.dims)
        elif kind == "Tuple" and any(isinstance(item, ast.Slice) for item in node.elts):
            self.walk_dimensions(node, node.elts)
        else:
            self.place_expression(node)

    def walk_dimensions(self, node: ast.AST, items: list[Any]) -> None:
        first = self.at
        for item in items:
            self.walk_index(item)
            if self.tokens[self.at] == ",":
                self.at += 1
        self.set_position(node, first)

    def walk_parameters(self, node: ast.arguments) -> None:
        args = getattr(node, "posonlyargs", []) + node.args
        defaults: list[ast.expr | None] = [None] * (len(args) - len(node.defaults))
        pairs = list(zip(args, defaults + node.defaults))
        pairs += [(node.vararg, None), *zip(node.kwonlyargs, node.kw_defaults), (node.kwarg, None)]
        for arg, default in pairs:
            if arg is None:
                continue
            self.skip(_BEFORE_PARAMETER)
            first = self.at
            self.at += 1
            if arg.annotation is not None:
                self.place_expression(arg.annotation)
            self.set_position(arg, first)
            if default is not None:
                self.place_expression(default)

    # Statements.

    def place_statement(self, node: ast.stmt) -> None:
        self.skip(_BEFORE_STMT)
        kind = type(node).__name__
        for decorator in getattr(node, "decorator_list", ()):
            self.place_expression(decorator)
            self.skip(_BEFORE_STMT)
        first = self.at
        if kind not in _EXPR_FIRST:
            self.at += 1  # the keyword
        if kind in _STATEMENTS:
            _STATEMENTS[kind](self, node)
        elif kind in _CHILDREN:
            self.walk_children(node)
        else:
            # Only names, which are no nodes or have no positions (global, import).
            while self.tokens[self.at] not in _STATEMENT_END:
                self.at += 1
        if kind in _COMPOUND:
            self.skip_semicolon()
        else:
            self.skip(_BEFORE_CLOSE)  # del a, b,
            self.require_in_step(self.tokens[self.at] in _STATEMENT_END)
        self.set_position(node, first)

    def skip_semicolon(self) -> None:
        # The last ';' of "if x: a;" does not belong to a but to the whole.
        if self.tokens[self.at] == ";":
            self.at += 1

    def walk_body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.place_statement(statement)

    def walk_with(self, node: ast.With) -> None:
        for item in node.items:
            self.walk_children(item)
        while self.tokens[self.at] != ":":  # the ')' around all items
            self.at += 1
        self.walk_body(node.body)

    def walk_function(self, node: ast.FunctionDef) -> None:
        # Behind "def" or "async", an opening bracket is the first certain token.
        while self.tokens[self.at] not in OPENING:
            self.at += 1
        self.skip_type_parameters()
        end = self.enter_brackets()
        self.walk_parameters(node.args)
        self.leave_brackets(end)
        if node.returns is not None:
            self.place_expression(node.returns)
        self.walk_body(node.body)

    def walk_class(self, node: ast.ClassDef) -> None:
        self.at += 1
        self.skip_type_parameters()
        if self.tokens[self.at] == "(":
            end = self.enter_brackets()
            self.walk_arguments(node.bases, node.keywords)
            self.leave_brackets(end)
        self.walk_body(node.body)

    def walk_type_alias(self, node: Any) -> None:
        self.place_expression(node.name)
        self.skip_type_parameters()
        self.place_expression(node.value)

    def skip_type_parameters(self) -> None:
        if self.tokens[self.at] == "[":
            self.at = self.match[self.at] + 1

    def walk_handler(self, node: ast.ExceptHandler) -> None:
        self.skip(_BEFORE_STMT)
        first = self.at
        self.at += 1
        if self.tokens[self.at] == "*":
            self.at += 1
        if node.type is not None:
            self.place_expression(node.type)
        if node.name is not None:
            self.at += 2
        self.walk_body(node.body)
        self.skip_semicolon()
        self.set_position(node, first)

    def walk_match_case(self, node: Any) -> None:
        self.skip(_BEFORE_STMT)
        while self.tokens[self.at] not in (":", "if"):
            self.at = max(self.at, self.match[self.at]) + 1
        if node.guard is not None:
            self.place_expression(node.guard)
        self.walk_body(node.body)


_Method = Callable[[_Walker, Any], None]
_HEADS: dict[str, _Method] = {
    "Dict": _Walker.walk_dict,
    "JoinedStr": _Walker.walk_fstring,
    "Tuple": _Walker.skip_empty_tuple,
    **dict.fromkeys("DictComp List ListComp Set SetComp".split(), _Walker.walk_bracketed),
    **dict.fromkeys("Await Lambda Starred UnaryOp Yield YieldFrom".split(), _Walker.walk_after_prefix),
}
_TAILS: dict[str, _Method] = {
    "Attribute": _Walker.skip_attribute,
    "BinOp": _Walker.walk_binary,
    "BoolOp": _Walker.walk_boolean,
    "Call": _Walker.walk_call,
    "Compare": _Walker.walk_compare,
    "Subscript": _Walker.walk_subscript,
    "Tuple": _Walker.walk_tuple,
}
_PARTS: dict[str, _Method] = {
    "ExceptHandler": _Walker.walk_handler,
    "arguments": _Walker.walk_parameters,
    "match_case": _Walker.walk_match_case,
}
_STATEMENTS: dict[str, _Method] = {
    "AsyncFunctionDef": _Walker.walk_function,
    "AsyncWith": _Walker.walk_with,
    "ClassDef": _Walker.walk_class,
    "FunctionDef": _Walker.walk_function,
    "TypeAlias": _Walker.walk_type_alias,
    "With": _Walker.walk_with,
}
