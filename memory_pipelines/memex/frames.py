"""pandas DataFrames and Arrow tables of the host: packing them for a kernel, or as rows.

Neither library is imported before somebody has made a value of it; both come with the extra `frames`.
"""

import base64
import importlib
import json
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.memex.kernels.arrow import KIND, MARK, TABLE
from memory_pipelines.memex.kernels.describing import frame_text, kind_of, known_frames

PLAIN = "plain"
"""In the context of a dump: rows in place of Arrow, for whoever has no kernel."""
_LOOKED_AT = 100  # items of a list or dict


def expected(values: Iterable[object], schemas: Iterable[Mapping[str, Any] | None]) -> bool:
    """Whether frames are likely to enter a kernel: a guess, for what can be prepared beforehand.

    Args:
        values: variables of a scope; frames are looked for in them, and in the items of lists and dicts.
        schemas: of the results of tools.
    """
    return any(map(_holds, values)) or any(f'"{KIND}"' in json.dumps(schema) for schema in schemas)


def packed(value: Any, at: str = "value") -> dict[str, str]:
    """Pack a frame as an Arrow stream.

    Args:
        value: of a kind that `kind_of` knows.
        at: where it is, for the message.

    Returns:
        What `kernels.arrow.opened` takes.

    Raises:
        InvalidInputError: its columns have no Arrow form, or pyarrow is not there.
    """
    kind = kind_of(value)
    if kind is None:
        raise InvalidInputError(f"{at}: a {type(value).__name__} has no JSON form", path=at)
    try:
        arrow: Any = importlib.import_module("pyarrow")
        ipc: Any = importlib.import_module("pyarrow.ipc")
    except ImportError as error:
        raise InvalidInputError(
            f"{at}: a DataFrame enters a kernel by way of pyarrow: install memory-pipelines[frames]", path=at
        ) from error
    try:
        table = value if kind == TABLE else arrow.Table.from_pandas(value)
        sink = arrow.BufferOutputStream()
        with ipc.new_stream(sink, table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(table)
        stream = base64.b64encode(sink.getvalue()).decode()
    except (arrow.ArrowException, ValueError, TypeError, OverflowError) as error:
        first = str(error).split("\n", 1)[0]
        raise InvalidInputError(
            f"{at}: the {kind} has no Arrow form: {first}. Give every column a name of its own and values of one type.",
            path=at,
        ) from error
    return {MARK: stream, "as": kind, "is": frame_text(value)}


def rows(value: Any) -> dict[str, Any]:
    """A frame as plain JSON.

    Args:
        value: of a kind that `kind_of` knows.

    Returns:
        `columns` and, by row, `data`.
    """
    if kind_of(value) == TABLE:
        columns = [str(name) for name in value.column_names]
        data = [list(row) for row in zip(*(column.to_pylist() for column in value.columns), strict=True)]
        return {"columns": columns, "data": json.loads(json.dumps(data, default=str))}
    return json.loads(value.to_json(orient="split", index=False, date_format="iso"))


def fallback(*, plain: bool) -> Callable[[Any], Any]:
    """What a dump to JSON does with a frame.

    Args:
        plain: as rows; else packed.

    Returns:
        A function that raises `ValueError` for values that are no frames.
    """

    def dump(value: Any) -> Any:
        if kind_of(value) is None:
            raise ValueError(f"unable to serialize a {type(value).__name__}")
        return rows(value) if plain else _packed_or_value_error(value)

    return dump


def with_frames(hint: Any) -> Any:
    """A type whose frames pydantic can give out.

    Args:
        hint: an annotation.

    Returns:
        The annotation, with marks where it had kinds of frames.
    """
    kind = next((kind for kind, made in known_frames() if hint is made), None)
    if kind is not None:
        return Annotated[Any, _Frame(kind)]
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return Annotated[(with_frames(args[0]), *args[1:])]
    inner = tuple(with_frames(one) for one in args)
    if inner == args:
        return hint
    if origin in (Union, types.UnionType):
        return Union[inner]  # noqa: UP007 - built at run time
    return origin[inner]


class _Frame:
    """Tells pydantic how a frame is given out and described."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frame) and other._kind == self._kind

    def __hash__(self) -> int:
        return hash(self._kind)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def dump(value: Any, info: core_schema.SerializationInfo[dict[str, bool] | None]) -> Any:
            plain = bool((info.context or {}).get(PLAIN))
            return fallback(plain=plain)(value) if kind_of(value) is not None else value

        dumped = core_schema.plain_serializer_function_ser_schema(dump, info_arg=True, when_used="json")
        checked = core_schema.is_instance_schema(dict(known_frames())[self._kind])
        return core_schema.json_or_python_schema(checked, checked, serialization=dumped)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {KIND: self._kind}


def _packed_or_value_error(value: Any) -> dict[str, str]:
    try:
        return packed(value)
    except InvalidInputError as error:
        raise ValueError(error.message) from error


def _holds(value: object) -> bool:
    inside: Iterable[object] = ()
    if isinstance(value, Mapping):
        inside = cast("Mapping[object, object]", value).values()
    elif isinstance(value, list | tuple):
        inside = cast("Sequence[object]", value)
    return kind_of(cast("object", value)) is not None or any(map(kind_of, islice(inside, _LOOKED_AT)))
