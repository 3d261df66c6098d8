"""Tells work from no work: whether code has looked at what it was given, and whether it assigned to its names."""

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Any, cast

from memory_pipelines.wording import tokens_of

_ANY = frozenset({"globals", "locals", "vars", "eval", "exec"})
"""Builtins that reach variables by other ways than their names."""

_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FIRST = 3
"""How many items of a list are shown first."""

_WORDS = 30
"""Characters of a line that are neither the name nor the value, with the count of what is left out."""


class Looking:
    """Follows the blocks of one rollout."""

    def __init__(self, scope: Mapping[str, Any], tools: Sequence[str]) -> None:
        """Begin before the first block.

        Args:
            scope: what the code was given.
            tools: names of what it may call; calling one is looking too.
        """
        self._scope = scope
        self._ways = {*scope, *tools, *_ANY}
        self.looked = not scope  # where there is nothing to read, nothing was left unread

    def saw(self, code: str) -> list[str]:
        """Take a block that runs.

        Args:
            code: of the block.

        Returns:
            Names of the scope that it assigns to.
        """
        tree = _tree(code)
        if tree is None:
            return []
        read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        self.looked = self.looked or not read.isdisjoint(self._ways)
        bound = set(_bound(tree.body))
        return [name for name in self._scope if name in bound]

    def line(self) -> str:
        """The line of code that would be a first look."""
        name, value = next(iter(self._scope.items()))
        part = f"[:{_FIRST}]" if isinstance(value, str | list | tuple) and len(cast("Sized", value)) > _FIRST else ""
        return f"print({name}{part})"


def look(scope: Mapping[str, Any], tokens: int) -> tuple[str, bool]:
    """Show what is in scope as short reprs.

    Args:
        scope: names and values.
        tokens: what the text may cost at most.

    Returns:
        A line for each value, and whether all of them are shown whole.
    """
    lines: list[str] = []
    whole, left = True, tokens
    for number, (name, value) in enumerate(scope.items()):
        share = left // (len(scope) - number)  # what one value leaves is there for the others
        text, all_of_it = _short(value, max(0, 4 * share - len(name) - _WORDS))
        line = f"- {name} = {text}"
        while line and tokens_of(line + "\n") > share:
            line = line[: min(len(line) - 1, len(line) * share // tokens_of(line + "\n"))]
            all_of_it = False
        whole = whole and all_of_it
        left -= tokens_of(line + "\n") if line else 0
        lines += [line] if line else []
    return "\n".join(lines), whole


def _short(value: Any, chars: int) -> tuple[str, bool]:
    """A repr that is never built much longer than what is shown of it."""
    if isinstance(value, str):
        rest = len(value) - chars
        return (repr(value), True) if rest <= 0 else (f"{value[:chars]!r} and {rest:,} more characters", False)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return _items(((f"{key!r}: ", one) for key, one in pairs), len(pairs), "{}", chars)
    if isinstance(value, list | tuple | set | frozenset):
        items = cast("Sequence[Any]", value)
        ends = "[]" if isinstance(value, list) else "()" if isinstance(value, tuple) else "{}"
        return _items((("", one) for one in items), len(items), ends, chars)
    text = repr(value)
    if hasattr(value, "shape"):
        return text[:chars], False  # arrays and data frames leave out most of themselves
    return (text, True) if len(text) <= chars else (f"{text[:chars]}...", False)


def _items(items: Iterator[tuple[str, Any]], count: int, ends: str, chars: int) -> tuple[str, bool]:
    shown: list[str] = []
    left, whole = chars, True
    for label, value in items:
        text, all_of_it = _short(value, chars)
        if len(label + text) > left and shown:
            break
        shown.append(label + text)
        left -= len(label + text) + 2
        whole = whole and all_of_it
    more = count - len(shown)
    tail = [f"... {more:,} more"] if more else []
    return f"{ends[0]}{', '.join([*shown, *tail])}{ends[1]}", whole and not more


def _tree(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the code's invalid escapes are the model's affair, not the host's
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # the kernel says what is wrong with it


def _bound(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Names that code at the top level of a block assigns to, deletes, imports or defines."""
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.alias(name=name, asname=given):
                yield given or name.partition(".")[0]
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
            case _:
                pass
        if isinstance(node, _INNER):
            if not isinstance(node, ast.Lambda):
                yield node.name
            yield from _declared_global(node)
        elif isinstance(node, _COMPREHENSIONS):
            # Its targets are its own; only := reaches outside.
            yield from (inner.target.id for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr))
        else:
            yield from _bound(list(ast.iter_child_nodes(node)))


def _declared_global(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Global):
            yield from inner.names
