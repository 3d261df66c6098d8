"""The code location: what `dagster dev -m memory_pipelines.orchestration.location` loads."""

import dagster as dg

from memory_pipelines.orchestration.build import build_definitions


@dg.definitions
def defs() -> dg.Definitions:
    """Read again at each reload of the code location."""
    return build_definitions()
