"""Feeds that observed runs did not reach, unless the source proves that they feed other placeholders.

The source often does not show what a feed feeds: the keys may be strings, tensors from a collection, or a dictionary
that other code fills. Then the feed counts.
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ..project.context import Context
from ..semantics.mentions import mentions_of_function
from ..semantics.module_index import Names
from ..semantics.value_flow import Origin, origins
from ..syntax.expressions import constant_or, index_of, last_name
from .fed_values import Feed, may_feed
from .surrounding_files import names_of_surrounding_files
from .tf_functions import enclosing_functions

_KEYWORDS = frozenset({"feed_dict", "feed_list", "feeds"})
# The position of what is fed, by the last word of the function.
_POSITIONS = {"run": 1, "eval": 0, "make_callable": 1, "partial_run": 2, "partial_run_setup": 1, "SessionRunArgs": 1}
_TENSORFLOW = "tensorflow."
_MAKERS = frozenset(
    _TENSORFLOW + name
    for name in """placeholder placeholder_with_default sparse_placeholder Variable constant get_variable
keras.backend.learning_phase keras.backend.placeholder keras.Input train.get_or_create_global_step""".split()
)
_PLACEHOLDER = "Placeholder"  # the name of an op without one
_NUMBERED = re.compile(r"(_\d+)?(:\d+)?$")


def unreached_feed(context: Context, placeholder: ast.Call) -> Feed | None:
    """Return a feed that no observed run reached, and that may feed a placeholder; None without one.

    A feed in a function that runs reached counts, if they did not reach another call of the function.

    Args:
        context: the file.
        placeholder: the call that makes it.
    """
    users = context.once(_users_of_graph)
    search = _Search(context, placeholder, users)
    for user in users:
        for call, fed in user.once(_feeding_calls):
            feed = search.unreached_place(call, fed, user)
            if feed is not None:
                return feed
    return None


def _users_of_graph(context: Context) -> list[Names]:
    """Return the files that may feed what a file makes."""
    return names_of_surrounding_files(context, may_feed)


def _feeding_calls(names: Names) -> list[tuple[ast.Call, ast.expr | None]]:
    """Return the calls of a file that may feed, with what they feed; None if the call does not show it."""
    feeds: list[tuple[ast.Call, ast.expr | None]] = []
    for node, _ in names.calls:
        given = [keyword.value for keyword in node.keywords if keyword.arg in _KEYWORDS]
        position = _POSITIONS.get(last_name(node.func))
        if given:
            feeds.append((node, given[0]))
        elif position is not None and not _is_of_others(names, node):
            hidden = any(isinstance(arg, ast.Starred) for arg in node.args) or any(k.arg is None for k in node.keywords)
            if hidden or len(node.args) > position:
                feeds.append((node, None if hidden else node.args[position]))
    return feeds


def _is_of_others(names: Names, call: ast.Call) -> bool:
    """Return True if a call is of a function of the project, or of a library and makes no arguments of a session."""
    where = names.place(call)
    name = names.resolve(call.func, where)
    return (name is not None and not name.endswith(".SessionRunArgs")) or names.definition(call.func, where) is not None


class _Search:
    """The search for the feeds of one placeholder."""

    def __init__(self, context: Context, placeholder: ast.Call, users: list[Names]) -> None:
        self._context, self._placeholder, self._users = context, placeholder, users
        given = [keyword.value for keyword in placeholder.keywords if keyword.arg == "name"] or placeholder.args[2:3]
        text = constant_or(given[0], None) if given else _PLACEHOLDER
        self._op_name = text if isinstance(text, str) else None

    def unreached_place(self, call: ast.Call, fed: ast.expr | None, user: Names) -> Feed | None:
        """Return the place that makes a call a feed of the placeholder which observed runs did not reach."""
        parts = [(call, user)] if fed is None else list(self._parts_of_feed(call, fed, user))
        places = [(call, user), *parts] if parts else []
        for node, names in places:
            if self._context.is_unreached(names, getattr(node, "lineno", 0)):
                return Feed(names, getattr(node, "lineno", 0))
        return next(filter(None, (self._unreached_caller(node, names) for node, names in places)), None)

    def _parts_of_feed(self, call: ast.Call, fed: ast.expr, user: Names) -> Iterator[tuple[ast.AST, Names]]:
        """Yield the expressions that may put the placeholder into a feed."""
        yield from self._changes(call, last_name(fed), user)
        for origin in origins(fed, user.place(call), user):
            if not self._feeds_others(origin):
                yield origin.node, origin.names
            parent = origin.names.parents.get(origin.node)
            for target in parent.targets if isinstance(parent, ast.Assign) else ():
                yield from self._changes(origin.node, last_name(target), origin.names)

    def _feeds_others(self, origin: Origin) -> bool:
        node = origin.node
        if isinstance(node, ast.Dict):
            return all(key is not None and self._is_other(key, origin.names) for key in node.keys)
        if isinstance(node, (ast.List, ast.Tuple)):
            return all(self._is_other(key, origin.names) for key in node.elts)
        return isinstance(node, ast.Call) and origin.resolve() == "dict" and not node.args

    def _changes(self, node: ast.AST, word: str, names: Names) -> Iterator[tuple[ast.AST, Names]]:
        """Yield the expressions that may add the placeholder to a dictionary with a name, in the function of a node."""
        around = enclosing_functions(names, node)
        inside = around[0] if around and word in names.place(node).scope.bindings else None
        for mention in names.mentions(word, inside) if word else ():
            parent = names.parents.get(mention)
            if isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store) and parent.value is mention:
                if not self._is_other(index_of(parent), names):
                    yield mention, names
            elif isinstance(parent, ast.Attribute) and parent.attr in ("update", "setdefault", "__setitem__"):
                yield mention, names
            elif isinstance(parent, ast.Call) and names.definition(parent.func, names.place(parent)) is not None:
                yield mention, names

    def _is_other(self, key: ast.expr, names: Names, through_attributes: bool = True) -> bool:
        """Return True if the key of a feed is certainly not the placeholder."""
        sources = origins(key, names.place(key), names)
        return bool(sources) and all(self._is_other_source(source, through_attributes) for source in sources)

    def _is_other_source(self, source: Origin, through_attributes: bool) -> bool:
        node = source.node
        if isinstance(node, ast.Attribute):
            return through_attributes and self._hold_others(node.attr)
        if isinstance(node, ast.Call) and last_name(node.func) == "get_tensor_by_name" and node.args:
            node = node.args[0]
        text = constant_or(node, None)
        if isinstance(text, str):
            names = [_NUMBERED.sub("", name or "") for name in (text.rpartition("/")[2], self._op_name)]
            return self._op_name is not None and names[0] != names[1]
        return isinstance(node, ast.Call) and source.resolve() in _MAKERS and not self._is_placeholder(source)

    def _is_placeholder(self, source: Origin) -> bool:
        """Return True if an expression is the placeholder; its file may have been read more than once."""
        own = self._placeholder
        place = (getattr(source.node, "lineno", 0), getattr(source.node, "col_offset", 0))
        return place == (own.lineno, own.col_offset) and source.names.path == self._context.names.path

    def _hold_others(self, attribute: str) -> bool:
        """Return True if all that the program assigns to attributes of a name is other placeholders."""
        held = [(binding, user) for user in self._users for _, binding in user.attributes.get(attribute, ())]
        return bool(held) and all(
            binding.kind == "value"
            and isinstance(binding.node, ast.expr)
            and self._is_other(binding.node, user, through_attributes=False)
            for binding, user in held
        )

    def _unreached_caller(self, node: ast.AST, names: Names) -> Feed | None:
        """Return a call that observed runs did not reach, of the function around a node, or of those that call it."""
        seen: set[ast.AST] = set()
        waiting = [(function, names) for function in enclosing_functions(names, node)]
        statement = names.place(node).statement
        held = [last_name(t) for t in statement.targets] if isinstance(statement, ast.Assign) else []
        uses = [(use, names) for word in held if _is_called_later(node, names) for use in names.mentions(word)]
        while waiting or uses:
            for use, user in uses:
                if self._context.is_unreached(user, getattr(use, "lineno", 0)):
                    return Feed(user, getattr(use, "lineno", 0))
                waiting += [(function, user) for function in enclosing_functions(user, use)]
            uses = []
            if waiting:
                function, user = waiting.pop()
                if function not in seen:
                    seen.add(function)
                    mentions = mentions_of_function(function, user, of_objects=True) or ()
                    uses = [(mention.node, mention.names) for mention in mentions]
        return None


def _is_called_later(node: ast.AST, names: Names) -> bool:
    """Return True if the statement around a feed makes a function that feeds."""
    is_callable = isinstance(node, ast.Call) and last_name(node.func) == "make_callable"
    return is_callable or any(isinstance(parent, ast.Lambda) for parent in names.ancestors(node))
