"""The Dagster door: assets, jobs, sensor and schedules around the runner. Nothing below this floor imports Dagster."""
