"""What people may ask: every rule once, the same for CLI, REST and Python."""

from memory_pipelines.service.memory import MemoryService
from memory_pipelines.service.pipelines import PipelineService
from memory_pipelines.service.sessions import SessionService

__all__ = ["MemoryService", "PipelineService", "SessionService"]
