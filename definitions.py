"""Dagster's way in: `dagster dev` at the top level loads this file."""

from memory_pipelines.orchestration.location import defs

__all__ = ["defs"]
