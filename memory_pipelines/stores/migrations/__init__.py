"""Steps of the schema, run by Alembic; `versions` holds one file a step."""
