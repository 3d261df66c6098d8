"""Importers bring conversations from files: `base` is the port, each other file reads one format."""
