"""JSON schemas as anybody might write them: keywords of any type, references in circles, names that are no Python."""

from typing import Any

from hypothesis import strategies as st

JSON_TYPES = ["string", "integer", "number", "boolean", "null", "array", "object", "unheard of"]

words = st.sampled_from(
    [
        "a",
        "b-c",
        "b.c",
        "class",
        "_id",
        "2nd",
        "schema",
        "model_x",
        "",
        "копия",
        "ﬁ",
        "x²",
        "print",
        "$ref",
        "\ud800",
        "\0",
    ]
) | st.text(max_size=3)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
refs = st.sampled_from(
    [
        "#",
        "#/$defs/Thing",
        "#/$defs/Other",
        "#/definitions/Thing",
        "#/properties/a",
        "#/items/0",
        "#/$defs/Nowhere",
        "x",
    ]
)


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A schema of known keywords, most of which have values of the right type."""
    several = st.lists(inner, max_size=3) | anything
    named = st.dictionaries(words, inner, max_size=3) | anything
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(JSON_TYPES) | st.lists(st.sampled_from(JSON_TYPES), max_size=3) | anything,
            "properties": named,
            "required": st.lists(words, max_size=3) | anything,
            "items": inner | several,
            "prefixItems": several,
            "additionalProperties": inner | st.booleans() | anything,
            "anyOf": several,
            "oneOf": several,
            "allOf": several,
            "$ref": refs | anything,
            "$defs": st.fixed_dictionaries({"Thing": inner, "Other": inner}) | anything,
            "definitions": st.fixed_dictionaries({"Thing": inner}) | anything,
            "title": st.sampled_from(["Thing", "Other", "No Name", "list", "\udfff"]) | anything,
            "description": st.sampled_from(['says "quoted"', '"""', "back\\", "a\nb\r\x0c\x85", "\ud800\0"]) | anything,
            "default": anything,
            "enum": st.lists(anything, max_size=3) | anything,
            "const": anything,
            "format": st.sampled_from(["date", "date-time", "uri"]) | anything,
            "nullable": anything,
            "minimum": anything,
            "maxItems": anything,
        },
    )


schemas = st.recursive(keywords(anything), keywords, max_leaves=6)
