"""What is checked and cleaned on the way in, in this one place."""

from collections.abc import Mapping
from typing import Any

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.stores.columns import dump
from memory_pipelines.text import clean_json, clean_text


def item_data(value: Any) -> Any:
    """Return an item's data cleaned, or refuse what cannot be kept as JSON."""
    try:
        clean = clean_json(value)
    except RecursionError as error:
        raise InvalidInputError("the data of an item is nested too deeply") from error
    dump(clean)
    return clean


def labels(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Return metadata cleaned."""
    return {clean_text(key): clean_text(value) for key, value in (metadata or {}).items()}
