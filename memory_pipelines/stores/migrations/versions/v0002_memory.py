"""Memory: entries, their past, and the facts they rest on."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "memory_stores",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("creator", sa.String(), nullable=False),
        sa.Column("create_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("update_time", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_memory_stores"),
    )
    op.create_table(
        "entries",
        sa.Column("store", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("actor_id", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("content", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("source_type", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("create_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("update_time", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("store", "id", name="pk_entries"),
        sa.ForeignKeyConstraint(["store"], ["memory_stores.id"], name="fk_entries_store", ondelete="CASCADE"),
        sa.UniqueConstraint(
            "store", "actor_id", "session_id", "path", name="uq_entries_store_actor_id_session_id_path"
        ),
    )
    op.create_table(
        "revisions",
        sa.Column("store", sa.String(), nullable=False),
        sa.Column("entry_id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("actor_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("content", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("pipeline_id", sa.String(), nullable=True),
        sa.Column("run", sa.Integer(), nullable=True),
        sa.Column("stage", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("store", "entry_id", "version", name="pk_revisions"),
        sa.ForeignKeyConstraint(["store"], ["memory_stores.id"], name="fk_revisions_store", ondelete="CASCADE"),
    )
    op.create_index("ix_revisions_pipeline_id_run", "revisions", ["pipeline_id", "run"], unique=False)
    op.create_index("ix_revisions_store_actor_id", "revisions", ["store", "actor_id"], unique=False)
    op.create_table(
        "facts",
        sa.Column("store", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("actor_id", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("quote", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("session_store", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("item_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("item_hash", sa.String(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("end", sa.Integer(), nullable=False),
        sa.Column("observed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("pipeline_id", sa.String(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("window_id", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("basis", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("store", "id", name="pk_facts"),
        sa.ForeignKeyConstraint(["store"], ["memory_stores.id"], name="fk_facts_store", ondelete="CASCADE"),
    )
    op.create_index("ix_facts_pipeline_id_actor_id_state", "facts", ["pipeline_id", "actor_id", "state"], unique=False)
    op.create_index("ix_facts_store_actor_id", "facts", ["store", "actor_id"], unique=False)
    op.create_table(
        "ties",
        sa.Column("store", sa.String(), nullable=False),
        sa.Column("entry_id", sa.String(), nullable=False),
        sa.Column("line", sa.String(), nullable=False),
        sa.Column("fact_id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("store", "entry_id", "line", "fact_id", name="pk_ties"),
        sa.ForeignKeyConstraint(
            ["store", "entry_id"], ["entries.store", "entries.id"], name="fk_ties_store_entry_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["store", "fact_id"], ["facts.store", "facts.id"], name="fk_ties_store_fact_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_ties_store_fact_id", "ties", ["store", "fact_id"], unique=False)
    op.create_table(
        "tombstones",
        sa.Column("store", sa.String(), nullable=False),
        sa.Column("actor_id", sa.String(), nullable=False),
        sa.Column("item_hash", sa.String(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("end", sa.Integer(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("store", "actor_id", "item_hash", "start", "end", name="pk_tombstones"),
        sa.ForeignKeyConstraint(["store"], ["memory_stores.id"], name="fk_tombstones_store", ondelete="CASCADE"),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("tombstones")
    op.drop_table("ties")
    op.drop_table("facts")
    op.drop_table("revisions")
    op.drop_table("entries")
    op.drop_table("memory_stores")
