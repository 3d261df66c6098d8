"""Numbers of system calls by name, for tests that make or refuse them."""

import os
from functools import cache
from pathlib import Path

TABLE = Path(__file__).parents[1] / "data" / "syscalls.txt"
MACHINES = ("x86_64", "aarch64")


@cache
def numbers(machine: str) -> dict[str, int]:
    """Return the number of each call that the machine has, by name."""
    place = 1 + MACHINES.index(machine)
    rows = (line.split() for line in TABLE.read_text().splitlines() if not line.startswith("#"))
    return {row[0]: int(row[place]) for row in rows if row[place] != "-"}


def here() -> dict[str, int]:
    """Return the numbers of this machine; none on one that the table does not know."""
    machine = os.uname().machine
    return numbers(machine) if machine in MACHINES else {}
