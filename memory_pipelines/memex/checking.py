"""Checks values against types and JSON schemas: arguments of tools, and what is submitted."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from memory_pipelines.memex.kernels.spelling import complaints, dotted, first_ten
from memory_pipelines.memex.shapes import Schema, plain_json, signature

MENDED = 100
"""How many wrong keywords of one schema are left out before nothing of it is believed."""
MESSAGE_CHARS = 300
"""How much of one complaint is kept: it quotes the value, which may be large."""

_DATA = ("const", "enum", "default", "examples", "example")
"""Keywords whose values are no schemas."""

_log = logging.getLogger(__name__)


Judge = Callable[[Any], tuple[Any, str | None]]
"""Takes a submitted value in JSON form; gives it as the result's type has it, and why it does not fit, if so."""


def by_type(kind: Any) -> Judge:
    """Judge values by a Python type.

    Args:
        kind: a type, a model or an annotation.

    Returns:
        What gives values of the type, or `path: message` lines.
    """
    adapter = TypeAdapter[Any](kind)

    def judge(value: Any) -> tuple[Any, str | None]:
        try:
            return adapter.validate_json(to_json(value)), None
        except ValidationError as error:
            return None, complaints(error)

    return judge


def by_schema(schema: Mapping[str, Any] | None) -> Judge:
    """Judge values by a JSON schema of anybody's making.

    Args:
        schema: of the value; None takes any.

    Returns:
        What gives the values as they are, or `path: message` lines.
    """
    if schema is None:
        return lambda value: (value, None)
    # The definitions stay at the root, where references look for them.
    inner = {name: part for name, part in schema.items() if name not in ("$defs", "definitions")}
    root = {name: schema[name] for name in ("$defs", "definitions") if name in schema}
    whole = {**root, "type": "object", "properties": {"value": inner}, "required": ["value"]}
    checker = Checker(whole, name="submit")

    def judge(value: Any) -> tuple[Any, str | None]:
        wrong = checker.check({"value": value})[1]
        return value, first_ten([one.removeprefix("value.").removeprefix("value: ") for one in wrong]) or None

    return judge


class Checker:
    """Holds arguments against a schema. Nothing that a schema points to is ever fetched."""

    def __init__(self, schema: Mapping[str, Any], *, name: str) -> None:
        """Prepare; what is wrong with the schema itself is left out, with a warning, and the rest is checked.

        Args:
            schema: of the arguments, an object.
            name: of the tool, for the warning.
        """
        given = cast("Schema", plain_json(schema))
        if not isinstance(given.get("$schema"), str):
            given.pop("$schema", None)
        kind = validator_for(given, default=Draft202012Validator)
        left_out = [*_mend(given, kind), *_mend_references(given), *_mend_patterns(given)]
        if left_out:
            _log.warning(
                "tool %s: its schema is not right at %s; that is not checked", name, ", ".join(sorted(set(left_out)))
            )
        whole = signature(given)
        self._names = list(whole["properties"])
        self._required = frozenset(whole["required"])
        # The signature is what the model is shown: a name that is not in it is a mistake, unless the schema says more.
        self._closed = not {"additionalProperties", "patternProperties", "unevaluatedProperties"} & whole.keys()
        self._validator = kind(given, registry=Registry())

    def check(self, arguments: Mapping[str, object]) -> tuple[dict[str, Any], list[str]]:
        """Check the arguments of one call.

        Args:
            arguments: by the names of the schema.

        Returns:
            The arguments, without optional ones that are None where the schema wants them left out; and what does not
            fit, as lines `path: message`.
        """
        given: dict[str, Any] = dict(arguments)
        wrong: list[str] = []
        try:
            for error in self._validator.iter_errors(given):
                path = list(error.absolute_path)
                if len(path) == 1 and path[0] not in self._required and given.get(str(path[0]), 0) is None:
                    del given[str(path[0])]
                else:
                    place = f"{_cut(dotted(path))}: " if path else ""
                    wrong.append(f"{place}{_cut(str(error.message))}")
        except (RecursionError, Unresolvable):
            wrong.append("the arguments are nested too deep, or the schema of this tool is, so they cannot be checked")
        if self._closed:
            known = ", ".join(self._names) or "none"
            wrong += [
                f"{_cut(name)}: no such argument; there are: {known}" for name in given if name not in self._names
            ]
        return given, wrong


def _mend(schema: Schema, kind: type[Validator]) -> Iterator[str]:
    """Leave out keywords that are against the rules of JSON schemas; gives their places."""
    rules = kind(kind.META_SCHEMA)
    for _ in range(MENDED):
        try:
            error = next(iter(rules.iter_errors(schema)), None)
        except RecursionError:  # nested too deep to be read
            yield _place([])
            break
        if error is None:
            return
        path = list(error.absolute_path)
        yield _place(path)
        if not path:
            break
        holder: Any = schema
        for step in path[:-1]:
            holder = holder[step]
        del holder[path[-1]]
    schema.clear()


def _mend_references(schema: Schema) -> Iterator[str]:
    """Leave out references that lead nowhere, out of the schema, or in a circle; gives their places."""
    registry: Registry[Any] = Registry()
    resolver = registry.with_resource("", DRAFT202012.create_resource(schema)).resolver()
    for place, one in _within(schema, []):
        seen: list[Any] = []
        at: Any = one
        while isinstance(at, Mapping) and isinstance(cast("Schema", at).get("$ref"), str):
            try:
                if any(at is earlier for earlier in seen):
                    raise LookupError
                seen.append(at)
                at = resolver.lookup(cast("Schema", at)["$ref"]).contents
            except (Unresolvable, LookupError, TypeError, ValueError):
                del one["$ref"]
                yield _place([*place, "$ref"])
                break


def _mend_patterns(schema: Schema) -> Iterator[str]:
    """Leave out patterns that mean nothing to Python, as some of other languages do; gives their places."""
    for place, one in _within(schema, []):
        holders = [(one, "pattern", one.get("pattern"))]
        by_pattern = one.get("patternProperties")
        if isinstance(by_pattern, dict):
            holders += [(by_pattern, pattern, pattern) for pattern in list(cast("Schema", by_pattern))]
        for holder, key, pattern in holders:
            try:
                re.compile(pattern if isinstance(pattern, str) else "")
            except (re.error, OverflowError, RecursionError):
                del holder[key]
                yield _place([*place, key])


def _within(value: Any, place: list[Any]) -> Iterator[tuple[list[Any], MutableMapping[str, Any]]]:
    """Every object of a schema with its place."""
    if isinstance(value, dict):
        given = cast("Schema", value)
        yield place, given
        for key in [key for key in given if key not in _DATA]:
            yield from _within(given[key], [*place, key])
    elif isinstance(value, list):
        for number, one in enumerate(cast("list[Any]", value)):
            yield from _within(one, [*place, number])


def _place(path: list[Any]) -> str:
    text = "/".join(str(step) for step in path)[:MESSAGE_CHARS] or "its beginning"
    return text.encode("utf-8", "backslashreplace").decode()  # half a character could not be written to a log


def _cut(text: str) -> str:
    half = MESSAGE_CHARS // 2
    return text if len(text) <= MESSAGE_CHARS else f"{text[:half]} ... {text[-half:]}"
