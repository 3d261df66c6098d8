"""Read by Alembic: runs the steps on the connection that was handed over, inside its transaction."""

from alembic import context

from memory_pipelines.stores.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
context.run_migrations()
