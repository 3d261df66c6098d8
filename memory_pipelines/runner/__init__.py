"""What a run does: the stages over actors, with guards, transactions and marks."""

from memory_pipelines.runner.runner import Runner, RunnerOptions

__all__ = ["Runner", "RunnerOptions"]
