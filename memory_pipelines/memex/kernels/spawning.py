"""What the code says of a subagent that it wants: the words that go home, the objects that stay, and the way back.

Part of the worker: standard library, and pydantic for the type of a result.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

from memory_pipelines.memex.kernels.describing import described
from memory_pipelines.memex.kernels.spelling import complaints, identifier

DESCRIBED_CHARS = 500
"""How much is told of one shared object."""


def asked(
    task: object, scope: object, result: Any, *, taken: Callable[[str], bool]
) -> tuple[dict[str, Any], dict[str, Any], Callable[[Any], Any]]:
    """Check what `spawn_agent` was given.

    Args:
        task: in words.
        scope: objects by the names that they shall have, or None.
        result: a type, or None for any JSON value.
        taken: whether a name belongs to the kernel.

    Returns:
        The arguments of the call, the objects, and what makes a value of the result's type of JSON.

    Raises:
        TypeError: something cannot be used; says what is allowed.
    """
    if not isinstance(task, str) or not task.strip():
        raise TypeError(f"spawn_agent takes the task as text, got {type(task).__name__}")
    if scope is not None and not isinstance(scope, Mapping):
        raise TypeError(
            f"spawn_agent takes scope as a dict of names and objects, such as {{'rows': rows}}, got "
            f"{type(scope).__name__}"
        )
    objects = dict(cast("Mapping[Any, Any]", scope or {}))
    for name in objects:
        if not isinstance(name, str) or identifier(name) != name or taken(name):
            raise TypeError(f"an object cannot be called {name!r}: give it the name of a variable, none of the kernel")
    schema, rebuild = _result(result)
    texts = {name: _described(value) for name, value in objects.items()}
    return {"task": task, "scope": texts, "result": schema}, objects, rebuild


def _result(kind: Any) -> tuple[dict[str, Any] | None, Callable[[Any], Any]]:
    if kind is None or kind is Any:
        return None, _as_it_is
    from pydantic import TypeAdapter, ValidationError
    from pydantic.errors import PydanticUserError

    try:
        adapter = TypeAdapter[Any](kind)
        schema = adapter.json_schema()
    except (PydanticUserError, NameError, TypeError) as error:
        first = str(error).split("\n", 1)[0]
        raise TypeError(f"result={kind!r} has no JSON form: {first}. Use plain types, dataclasses or models") from None

    def rebuild(value: Any) -> Any:
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            # A dataclass or an enum of this namespace may be stricter than its schema says.
            raise TypeError(f"the subagent's value does not fit the result\n{complaints(error)}") from None

    return schema, rebuild


def _as_it_is(value: Any) -> Any:
    return value


def _described(value: object) -> str:
    text = type(value).__name__
    with suppress(Exception):  # the boundary to objects of anybody's making
        text = described(value)
    return text.encode("utf-8", "backslashreplace").decode()[:DESCRIBED_CHARS]
