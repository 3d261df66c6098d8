"""Applies a pipeline's changes to an actor's entries: compare and swap, revisions, and the ties of lines."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session
from sqlmodel import col

from memory_pipelines.errors import ConflictError, InvalidInputError
from memory_pipelines.names import check_path
from memory_pipelines.records import Change
from memory_pipelines.stores import entries
from memory_pipelines.stores.database import chunks
from memory_pipelines.stores.entries import Writer
from memory_pipelines.stores.evidence import tie, ties_of, untie
from memory_pipelines.stores.hashes import line_hash, lines_of
from memory_pipelines.stores.tables import EntryRow, FactRow
from memory_pipelines.text import clean_text

Ties = dict[str, set[str]]


class ChangeSet:
    """Changes of one actor, applied in one transaction.

    Ties of lines that stay are kept. Ties of a line that goes from one entry and comes in another move with it. Ties of
    lines that are gone go; their facts stay as they were settled.
    """

    def __init__(self, session: Session, store: str, actor_id: str, writer: Writer) -> None:
        """Keep where to write.

        Args:
            session: a writing transaction.
            store: id of the memory store.
            actor_id: of whom alone entries may change.
            writer: who writes, when, in which stage.
        """
        self._session = session
        self._store = store
        self._actor_id = actor_id
        self._writer = writer

    def apply(self, changes: Sequence[Change]) -> Counter[str]:
        """Apply all changes or raise.

        Args:
            changes: deletions free their paths first, whatever the order.

        Returns:
            How many entries were created, updated and deleted; an update that says nothing new is none.

        Raises:
            ConflictError: an entry changed, went or came since the change was made; `path` says which.
            InvalidInputError: a change is of another actor's entry, or rests on a fact that is none of this actor's.
        """
        self._check_facts(changes)
        touched = {change.entry_id: self._locked(change) for change in changes if change.action != "create"}
        before = ties_of(self._session, self._store, [row.id for row in touched.values()])
        moving: Ties = defaultdict(set)
        for lines in before.values():
            for line, facts in lines.items():
                moving[line] |= facts
        done: Counter[str] = Counter()
        for change in sorted(changes, key=lambda change: change.action != "delete"):
            done[f"{change.action}d"] += self._apply(change, touched, before, moving)
        return done

    def _apply(
        self, change: Change, touched: dict[str | None, EntryRow], before: dict[str, Ties], moving: Ties
    ) -> bool:
        reason, content, description = map(clean_text, (change.reason, change.content, change.description))
        if change.action == "delete":
            entries.remove(self._session, touched[change.entry_id], writer=self._writer, reason=reason)
            return True
        if change.action == "create":
            row, old = self._create(change, content, description, reason), dict[str, str]()
            changed = True
        else:
            row = touched[change.entry_id]
            old = lines_of(row.content)
            changed = entries.update(
                self._session, row, content=content, description=description, writer=self._writer, reason=reason
            )
        new = lines_of(content)
        ties: Ties = defaultdict(set)
        for given in change.ties:
            digest = line_hash(given.line)
            if digest in new:  # a guard may have dropped the line
                ties[digest].add(given.fact_id)
        for digest in new.keys() - old.keys():
            ties[digest] |= moving.get(digest, set())
        untie(self._session, self._store, row.id, before.get(row.id, {}).keys() - new.keys())
        self._session.flush()
        tie(self._session, self._store, row.id, ties)
        return changed

    def _create(self, change: Change, content: str, description: str, reason: str) -> EntryRow:
        path = check_path(clean_text(change.path))
        if entries.find(self._session, self._store, self._actor_id, path) is not None:
            raise self._conflict(path, "somebody created it meanwhile")
        return entries.create(
            self._session,
            self._store,
            actor_id=self._actor_id,
            path=path,
            content=content,
            description=description,
            source_type="DREAMER",
            writer=self._writer,
            reason=reason,
        )

    def _locked(self, change: Change) -> EntryRow:
        if change.entry_id is None or change.version is None:
            raise InvalidInputError(
                f"the {change.action} of {change.path} does not say which entry and version it was made from",
                path=change.path,
            )
        row = self._session.get(EntryRow, (self._store, change.entry_id), with_for_update=True)
        if row is None:
            raise self._conflict(change.path, "somebody deleted it meanwhile")
        if row.actor_id != self._actor_id or row.session_id:
            raise InvalidInputError(
                f"{row.path} is not an entry that a pipeline may change for actor {self._actor_id!r}", path=row.path
            )
        if row.version != change.version:
            raise self._conflict(row.path, f"it is at version {row.version}, the change was made from {change.version}")
        return row

    def _check_facts(self, changes: Sequence[Change]) -> None:
        named = {given.fact_id for change in changes for given in change.ties}
        known: set[str] = set()
        for part in chunks(sorted(named)):
            known |= set(
                self._session.scalars(
                    select(col(FactRow.id)).where(
                        col(FactRow.store) == self._store,
                        col(FactRow.actor_id) == self._actor_id,
                        col(FactRow.id).in_(part),
                    )
                )
            )
        if named - known:
            raise InvalidInputError(
                f"lines rest on facts that actor {self._actor_id!r} does not have: {sorted(named - known)[:5]}"
            )

    @staticmethod
    def _conflict(path: str, what: str) -> ConflictError:
        return ConflictError(f"{path}: {what}; read the entries again and make the changes anew", path=path)
