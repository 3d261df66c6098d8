"""Tools: typed functions of the host that the code of an agent may call."""

import asyncio
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import PydanticSerializationError, to_jsonable_python

from memory_pipelines.errors import BudgetExceededError, CancelledRunError, InvalidInputError, ToolError
from memory_pipelines.memex.frames import PLAIN, fallback, with_frames
from memory_pipelines.memex.kernels.spelling import complaints, first_ten, identifier
from memory_pipelines.memex.shapes import Schema

Check = Callable[[Mapping[str, object]], tuple[dict[str, Any], list[str]]]
"""Takes the arguments of a call; gives them as the function shall have them, and what is wrong with them."""


class JsonSchema(GenerateJsonSchema):
    """JSON schema without what only costs tokens: titles that repeat the field's name."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        """Never: the name of a field says it."""
        return False

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Stay silent: a default that has no JSON form is left out, which is right."""


def schema_of(kind: Any, *, mode: Literal["validation", "serialization"] = "serialization") -> Schema:
    """The JSON schema of a type.

    Args:
        kind: a type, a model or an annotation.
        mode: `validation` for what is taken, `serialization` for what is given out.

    Returns:
        The schema, with its definitions under `$defs`.

    Raises:
        InvalidInputError: values of this type have no JSON form.
    """
    try:
        return TypeAdapter[Any](kind).json_schema(mode=mode, schema_generator=JsonSchema)
    except (PydanticUserError, PydanticSchemaGenerationError, NameError, TypeError) as error:
        raise InvalidInputError(
            f"{_type_name(kind)} has no JSON form: {_first_line(error)}. "
            "Use plain types, dataclasses or pydantic models.",
            kind=_type_name(kind),
        ) from error


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A function of the host with everything needed to show it, check a call of it and run it."""

    name: str  # how the code calls it
    description: str  # for the model; the docstring unless given
    parameters: Schema  # JSON schema of the arguments, an object
    returns: Schema | None  # JSON schema of the result; None when the function does not say
    function: Callable[..., Any]  # sync or async
    arguments: type[BaseModel] | None = field(default=None, repr=False, compare=False)  # None: taken unchecked
    result: TypeAdapter[Any] | None = field(default=None, repr=False, compare=False)  # None: any JSON form
    plain: bool = False  # data frames as rows, for whoever has no kernel to have them in
    check: Check | None = field(default=None, repr=False, compare=False)  # in place of `arguments`

    async def call(self, arguments: Mapping[str, object]) -> Any:
        """Check the arguments, run the function (a sync one in a thread) and give its result in JSON form.

        Args:
            arguments: by name.

        Returns:
            The result, made of dicts, lists and scalars.

        Raises:
            ToolError: the arguments do not fit, as `path: message` lines; or what the function raised.
            BudgetExceededError: from the function, as it is: no model can mend it.
            CancelledRunError: from the function, as it is.
        """
        given = self._checked(arguments)
        try:
            if inspect.iscoroutinefunction(inspect.unwrap(self.function)):
                value = await self.function(**given)
            else:
                value = await asyncio.to_thread(self.function, **given)
                if inspect.isawaitable(value):
                    value = await value
        except (ToolError, BudgetExceededError, CancelledRunError):
            raise
        except Exception as error:  # the boundary: whatever a tool raises is told to the model
            raise ToolError(f"{self.name}: {type(error).__name__}: {error}", tool=self.name) from error
        return self._dumped(value)

    def _checked(self, arguments: Mapping[str, object]) -> dict[str, Any]:
        if self.check is not None:
            given, wrong = self.check(arguments)
            if wrong:
                raise ToolError(f"{self.name}: arguments do not fit\n{first_ten(wrong)}", tool=self.name)
            return given
        if self.arguments is None:
            return dict(arguments)
        try:
            checked = self.arguments.model_validate(dict(arguments))
        except ValidationError as error:
            raise ToolError(f"{self.name}: arguments do not fit\n{complaints(error)}", tool=self.name) from error
        fields = self.arguments.model_fields
        return {fields[name].alias or name: getattr(checked, name) for name in checked.model_fields_set}

    def _dumped(self, value: Any) -> Any:
        try:
            other = fallback(plain=self.plain)
            if self.result is None:
                return to_jsonable_python(value, fallback=other)
            return self.result.dump_python(
                value, mode="json", by_alias=True, warnings="none", fallback=other, context={PLAIN: self.plain}
            )
        except (PydanticSerializationError, ValueError, AttributeError) as error:
            raise ToolError(
                f"{self.name}: the result, a {type(value).__name__}, has no JSON form: {_first_line(error)}",
                tool=self.name,
            ) from error


def tool_of(function: Callable[..., Any], *, name: str | None = None, description: str | None = None) -> Tool:
    """Make a tool of a typed function.

    Args:
        function: sync or async; every parameter has a type and can be given by name. `Annotated[T, Field(...)]`
            adds a description and bounds to a parameter.
        name: how the code calls it, else the function's own name.
        description: what the model reads, else the docstring.

    Returns:
        The tool.

    Raises:
        InvalidInputError: a name or type that cannot be used; says which.
    """
    called = name or getattr(function, "__name__", type(function).__name__)
    if identifier(called) != called:
        raise InvalidInputError(f"a tool cannot be called {called!r}: give `name`, a Python identifier", name=called)
    target = function if inspect.isroutine(function) else inspect.unwrap(type(function).__call__)
    try:
        hints = typing.get_type_hints(target, include_extras=True)
        signature = inspect.signature(function)
    except (NameError, TypeError, ValueError) as error:
        raise InvalidInputError(f"tool {called}: its types cannot be read: {error}", tool=called) from error
    arguments = _arguments(called, signature, hints)
    result: TypeAdapter[Any] | None = None
    returns: Schema | None = None
    if "return" in hints and hints["return"] is not Any:
        kind = with_frames(hints["return"])
        returns = schema_of(kind)
        result = TypeAdapter[Any](kind)
    return Tool(
        name=called,
        description=inspect.cleandoc(description or function.__doc__ or ""),
        parameters=schema_of(arguments, mode="validation"),
        returns=returns,
        function=function,
        arguments=arguments,
        result=result,
    )


def _arguments(called: str, signature: inspect.Signature, hints: Mapping[str, Any]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for number, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InvalidInputError(
                f"tool {called}: parameter {name} cannot be given by name; write it as a plain parameter", tool=called
            )
        if name not in hints:
            raise InvalidInputError(f"tool {called}: parameter {name} has no type", tool=called)
        default = ... if parameter.default is parameter.empty else parameter.default
        # Fields under made-up names: a parameter may be called `schema` or `_x`, which pydantic does not allow.
        fields[f"p{number}"] = (hints[name], Field(default, alias=name))
    try:
        return create_model(called, __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False), **fields)
    except (PydanticUserError, PydanticSchemaGenerationError) as error:
        raise InvalidInputError(f"tool {called}: a parameter has no JSON form: {_first_line(error)}") from error


def _type_name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0]
