"""How an answer schema is sent to a provider, and how the answer is taken back out of that form."""

import json
from collections.abc import Mapping
from typing import Any

SCHEMA, OBJECT, WORDS = "json_schema", "json_object", "words"
FORMS = (SCHEMA, OBJECT, WORDS)
"""Tried in this order: OpenAI's form, that of llama.cpp's servers, and in the prompt."""

_KEY = "answer"


def as_object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema whose root is an object, which OpenAI and others insist on; a list becomes its only field.

    Args:
        schema: JSON schema of the answer.
    """
    if schema.get("type") == "object":
        return dict(schema)
    shared = {key: value for key, value in schema.items() if key == "$defs"}
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    return {
        "type": "object",
        "properties": {_KEY: inner},
        "required": [_KEY],
        "additionalProperties": False,
        **shared,
    }


def taken_out(text: str, schema: Mapping[str, Any]) -> str:
    """Return the answer without the object that `as_object` put around it; anything else stays as it is."""
    if schema.get("type") == "object":
        return text
    try:
        value: object = json.loads(text)
    except ValueError:
        return text  # whoever reads the answer says what is wrong with it
    if isinstance(value, dict) and list(value) == [_KEY]:  # pyright: ignore[reportUnknownArgumentType]
        return json.dumps(value[_KEY], ensure_ascii=False)
    return text
