"""The tables. Importing this makes the metadata whole."""

from memory_pipelines.stores.tables.base import Table
from memory_pipelines.stores.tables.memories import (
    EntryRow,
    FactRow,
    MemoryStoreRow,
    ProposalRow,
    RevisionRow,
    TieRow,
    TombstoneRow,
)
from memory_pipelines.stores.tables.pipelines import (
    BatchRow,
    ClaimRow,
    LeaseRow,
    PipelineRow,
    ResultRow,
    RunRow,
    UsageRow,
)
from memory_pipelines.stores.tables.progress import CallRow, HeartbeatRow, MarkRow, PendingRow, WindowRow
from memory_pipelines.stores.tables.sessions import ItemRow, PoppedRow, SessionRow, SessionStoreRow

__all__ = [
    "BatchRow",
    "CallRow",
    "ClaimRow",
    "EntryRow",
    "FactRow",
    "HeartbeatRow",
    "ItemRow",
    "LeaseRow",
    "MarkRow",
    "MemoryStoreRow",
    "PendingRow",
    "PipelineRow",
    "PoppedRow",
    "ProposalRow",
    "ResultRow",
    "RevisionRow",
    "RunRow",
    "SessionRow",
    "SessionStoreRow",
    "Table",
    "TieRow",
    "TombstoneRow",
    "UsageRow",
    "WindowRow",
]

METADATA = Table.metadata
"""All of the above, for migrations."""
