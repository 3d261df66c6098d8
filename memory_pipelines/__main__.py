"""Lets `python -m memory_pipelines` do what the command `memory-pipelines` does."""

import sys

from memory_pipelines.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
