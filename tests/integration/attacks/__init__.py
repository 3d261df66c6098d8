"""Blocks that try to get out of a kernel, to bring it down, or to reach its host; each says what must come of it."""

from attacks.attack import Attack
from attacks.files import FILES
from attacks.frames import FRAMES
from attacks.host import WORKS, attempt, host
from attacks.network import NETWORK
from attacks.processes import PROCESSES
from attacks.resources import RESOURCES
from attacks.sabotage import SABOTAGE

ALL = [*FILES, *NETWORK, *PROCESSES, *RESOURCES, *SABOTAGE, *FRAMES]

__all__ = [
    "ALL",
    "FILES",
    "FRAMES",
    "NETWORK",
    "PROCESSES",
    "RESOURCES",
    "SABOTAGE",
    "WORKS",
    "Attack",
    "attempt",
    "host",
]
