"""What all tables share: a registry of their own, apart from those of an application that uses SQLModel too."""

from typing import Any, ClassVar, cast

from sqlalchemy import MetaData
from sqlalchemy import Table as SqlTable
from sqlalchemy.orm import registry
from sqlmodel import SQLModel

_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Table(SQLModel, registry=registry(metadata=MetaData(naming_convention=_NAMES))):
    """Base of all tables."""

    __tablename__: ClassVar[Any]

    @classmethod
    def table(cls) -> SqlTable:
        """Return the table itself, for statements over many rows."""
        return cast("Any", cls).__table__
