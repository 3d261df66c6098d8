"""Finds secrets in text and takes them out. Pure: no files, no network, no state."""

from memory_pipelines.redaction.patterns import Found
from memory_pipelines.redaction.texts import find_secrets, redact, redact_json, redact_many

__all__ = ["Found", "find_secrets", "redact", "redact_json", "redact_many"]
