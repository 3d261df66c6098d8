"""Pipelines, their runs, and how far they have come."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "pipelines",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("display_name", sa.String(), nullable=False),
        sa.Column("session_store", sa.String(), nullable=False),
        sa.Column("memory_store", sa.String(), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("creator", sa.String(), nullable=False),
        sa.Column("last_run", sa.Integer(), nullable=False),
        sa.Column("create_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("update_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("delete_time", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_pipelines"),
        sa.ForeignKeyConstraint(["memory_store"], ["memory_stores.id"], name="fk_pipelines_memory_store"),
        sa.ForeignKeyConstraint(["session_store"], ["session_stores.id"], name="fk_pipelines_session_store"),
    )
    op.create_index(
        "uq_pipelines_pair",
        "pipelines",
        ["session_store", "memory_store"],
        unique=True,
        sqlite_where=sa.text("delete_time IS NULL"),
        postgresql_where=sa.text("delete_time IS NULL"),
    )
    op.create_table(
        "runs",
        sa.Column("pipeline_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("asked_by", sa.String(), nullable=False),
        sa.Column("launch", sa.Boolean(), nullable=False),
        sa.Column("actors", sa.Text(), nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("cut", sa.Boolean(), nullable=False),
        sa.Column("create_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("start_time", sa.DateTime(timezone=True), nullable=True),
        sa.Column("end_time", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("pipeline_id", "number", name="pk_runs"),
        sa.ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], name="fk_runs_pipeline_id", ondelete="CASCADE"),
    )
    op.create_index("ix_runs_state", "runs", ["state"], unique=False)
    op.create_index(
        "uq_runs_in_flight",
        "runs",
        ["pipeline_id"],
        unique=True,
        sqlite_where=sa.text("state = 'RUNNING' AND kind = 'asked'"),
        postgresql_where=sa.text("state = 'RUNNING' AND kind = 'asked'"),
    )
    op.create_table(
        "batches",
        sa.Column("pipeline_id", sa.String(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("start_time", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("pipeline_id", "run", "number", name="pk_batches"),
        sa.ForeignKeyConstraint(
            ["pipeline_id", "run"],
            ["runs.pipeline_id", "runs.number"],
            name="fk_batches_pipeline_id_run",
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "leases",
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("pipeline_id", sa.String(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("holder", name="pk_leases"),
        sa.ForeignKeyConstraint(
            ["pipeline_id", "run", "batch"],
            ["batches.pipeline_id", "batches.run", "batches.number"],
            name="fk_leases_pipeline_id_run_batch",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_leases_pipeline_id_run_batch", "leases", ["pipeline_id", "run", "batch"], unique=False)
    op.create_table(
        "claims",
        sa.Column("pipeline_id", sa.String(), nullable=False),
        sa.Column("actor_id", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("pipeline_id", "actor_id", name="pk_claims"),
        sa.ForeignKeyConstraint(["holder"], ["leases.holder"], name="fk_claims_holder", ondelete="CASCADE"),
    )
    op.create_index("ix_claims_holder", "claims", ["holder"], unique=False)
    op.create_table(
        "actor_results",
        sa.Column("pipeline_id", sa.String(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("actor_id", sa.String(), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("stages", sa.Integer(), nullable=False),
        sa.Column("targets", sa.Text(), nullable=True),
        sa.Column("seen_version", sa.BigInteger(), nullable=True),
        sa.Column("seen_tokens", sa.BigInteger(), nullable=False),
        sa.Column("counted", sa.Boolean(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("error_status", sa.String(), nullable=True),
        sa.Column("retryable", sa.Boolean(), nullable=False),
        sa.Column("read", sa.Text(), nullable=False),
        sa.Column("items", sa.Integer(), nullable=False),
        sa.Column("facts", sa.Integer(), nullable=False),
        sa.Column("dropped", sa.Text(), nullable=False),
        sa.Column("created", sa.Integer(), nullable=False),
        sa.Column("updated", sa.Integer(), nullable=False),
        sa.Column("deleted", sa.Integer(), nullable=False),
        sa.Column("start_time", sa.DateTime(timezone=True), nullable=True),
        sa.Column("end_time", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("pipeline_id", "run", "actor_id", name="pk_actor_results"),
        sa.ForeignKeyConstraint(
            ["pipeline_id", "run"],
            ["runs.pipeline_id", "runs.number"],
            name="fk_actor_results_pipeline_id_run",
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "ix_actor_results_pipeline_id_run_batch", "actor_results", ["pipeline_id", "run", "batch"], unique=False
    )
    op.create_table(
        "usage",
        sa.Column("pipeline_id", sa.String(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("actor_id", sa.String(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost", sa.Float(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("pipeline_id", "run", "actor_id", "stage", name="pk_usage"),
        sa.ForeignKeyConstraint(
            ["pipeline_id", "run"],
            ["runs.pipeline_id", "runs.number"],
            name="fk_usage_pipeline_id_run",
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "pending",
        sa.Column("pipeline_id", sa.String(), nullable=False),
        sa.Column("actor_id", sa.String(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("last_said_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("retry_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("pipeline_id", "actor_id", name="pk_pending"),
        sa.ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], name="fk_pending_pipeline_id", ondelete="CASCADE"),
    )
    op.create_table(
        "marks",
        sa.Column("pipeline_id", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("actor_id", sa.String(), nullable=False),
        sa.Column("distilled", sa.Integer(), nullable=False),
        sa.Column("checkpoint", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("pipeline_id", "session_id", name="pk_marks"),
        sa.ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], name="fk_marks_pipeline_id", ondelete="CASCADE"),
    )
    op.create_index("ix_marks_pipeline_id_actor_id", "marks", ["pipeline_id", "actor_id"], unique=False)
    op.create_table(
        "windows",
        sa.Column("pipeline_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("actor_id", sa.String(), nullable=False),
        sa.Column("segments", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("failed_runs", sa.Text(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("update_time", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("pipeline_id", "id", name="pk_windows"),
        sa.ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], name="fk_windows_pipeline_id", ondelete="CASCADE"),
    )
    op.create_index(
        "ix_windows_pipeline_id_actor_id_state", "windows", ["pipeline_id", "actor_id", "state"], unique=False
    )
    op.create_table(
        "calls",
        sa.Column("pipeline_id", sa.String(), nullable=False),
        sa.Column("actor_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("response", sa.Text(), nullable=False),
        sa.Column("create_time", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("pipeline_id", "actor_id", "key", name="pk_calls"),
        sa.ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], name="fk_calls_pipeline_id", ondelete="CASCADE"),
    )
    op.create_index("ix_calls_pipeline_id_actor_id_stage", "calls", ["pipeline_id", "actor_id", "stage"], unique=False)
    op.create_table(
        "proposals",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("store", sa.String(), nullable=False),
        sa.Column("pipeline_id", sa.String(), nullable=False),
        sa.Column("actor_id", sa.String(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("changes", sa.Text(), nullable=False),
        sa.Column("settled", sa.Text(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("create_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decide_time", sa.DateTime(timezone=True), nullable=True),
        sa.Column("decided_by", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_proposals"),
        sa.ForeignKeyConstraint(["store"], ["memory_stores.id"], name="fk_proposals_store", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], name="fk_proposals_pipeline_id", ondelete="CASCADE"),
    )
    op.create_index(
        "uq_proposals_open",
        "proposals",
        ["pipeline_id", "actor_id", "stage"],
        unique=True,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_table(
        "heartbeats",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_heartbeats"),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("heartbeats")
    op.drop_table("proposals")
    op.drop_table("calls")
    op.drop_table("windows")
    op.drop_table("marks")
    op.drop_table("pending")
    op.drop_table("usage")
    op.drop_table("actor_results")
    op.drop_table("claims")
    op.drop_table("leases")
    op.drop_table("batches")
    op.drop_table("runs")
    op.drop_table("pipelines")
