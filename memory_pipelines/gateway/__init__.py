"""The way to models."""
