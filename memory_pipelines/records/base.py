"""What all records share: frozen, nothing unknown, aware times."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict

from memory_pipelines.errors import InvalidInputError

Json = dict[str, Any]


def aware(moment: datetime) -> datetime:
    """Return the moment, or refuse it when it has no time zone."""
    if moment.tzinfo is None:
        raise InvalidInputError(f"{moment.isoformat()} has no time zone; give one, for example a trailing Z")
    return moment


Moment = Annotated[datetime, AfterValidator(aware)]


class Record(BaseModel):
    """Base of all records."""

    model_config = ConfigDict(frozen=True, extra="forbid")
