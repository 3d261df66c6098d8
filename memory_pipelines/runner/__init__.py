"""What a run does: the stages over actors, with guards, transactions and marks."""

from memory_pipelines.runner.runner import Runner
from memory_pipelines.runner.work import RunnerOptions

__all__ = ["Runner", "RunnerOptions"]
