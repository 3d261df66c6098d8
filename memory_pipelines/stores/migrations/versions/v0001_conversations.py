"""Conversations."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "session_stores",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("creator", sa.String(), nullable=False),
        sa.Column("create_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("update_time", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_session_stores"),
    )
    op.create_table(
        "sessions",
        sa.Column("store", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("actor_id", sa.String(), nullable=False),
        sa.Column("parent_id", sa.String(), nullable=True),
        sa.Column("root_id", sa.String(), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("last_position", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("create_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("update_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_activity_time", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("store", "id", name="pk_sessions"),
        sa.ForeignKeyConstraint(["store"], ["session_stores.id"], name="fk_sessions_store", ondelete="CASCADE"),
    )
    op.create_index("ix_sessions_store_actor_id", "sessions", ["store", "actor_id"], unique=False)
    op.create_table(
        "items",
        sa.Column("store", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("said_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("create_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("context", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("store", "session_id", "position", name="pk_items"),
        sa.ForeignKeyConstraint(
            ["store", "session_id"],
            ["sessions.store", "sessions.id"],
            name="fk_items_store_session_id",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_items_store_session_id_id", "items", ["store", "session_id", "id"], unique=True)
    op.create_table(
        "popped_items",
        sa.Column("store", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("said_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("create_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("context", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("store", "session_id", "position", name="pk_popped_items"),
        sa.ForeignKeyConstraint(
            ["store", "session_id"],
            ["sessions.store", "sessions.id"],
            name="fk_popped_items_store_session_id",
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("popped_items")
    op.drop_table("items")
    op.drop_table("sessions")
    op.drop_table("session_stores")
