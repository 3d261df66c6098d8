"""Measures our kernels beside those of others, in one run and in turn, so that all have the same machine.

    python bench/kernel.py --peers .bench/bin/python      # `make bench` makes that environment
    python bench/kernel.py --quick                        # ours only, few samples
    python bench/kernel.py --json figures.json            # also as JSON

Each contestant is a process of its own (see `contestants/`) that waits while the others are measured. What a peer has
no counterpart of stays blank. Nothing here fails because it was slow: read the load averages beside the figures.
"""

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from kernel_report import goals, summary, text

SCRIPTS = Path(__file__).resolve().parent / "contestants"
OURS = ("pool", "fork", "fork with pandas", "subprocess", "inprocess")
PEERS = {
    "jupyter": ("with_jupyter.py",),
    "smolagents": ("with_smolagents.py",),
    "monty": ("with_monty.py", "reused"),
    "monty, fresh": ("with_monty.py", "fresh"),
}
HEAVY = ("jupyter", "subprocess")
"""They start so slowly that a few samples have to do."""
ROUNDS = 5
TIMES = {  # a round: samples, and those of the heavy ones
    "start": (20, 2),
    "block": (40, 20),
    "tool": (50, 20),
    "loop": (3, 3),
    "rollouts": (80, 8),
    "memory": (4, 2),
}
ANSWER_SECONDS = 120
LINE_BYTES = 1 << 22


class AbsentError(Exception):
    """A contestant does not run here; says why."""


class Contestant:
    """A child process that measures one kernel when told to."""

    def __init__(self, process: asyncio.subprocess.Process, complaints: Any) -> None:
        self._process = process
        self._complaints = complaints

    async def heard(self) -> dict[str, Any]:
        """Wait for its next line."""
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), ANSWER_SECONDS)
        if not line:
            await self._process.wait()
            self._complaints.seek(0)
            last = self._complaints.read().strip().splitlines()[-1:] or [f"exit code {self._process.returncode}"]
            raise AbsentError(last[0][:200])
        return json.loads(line)

    async def asked(self, measure: str, times: int) -> dict[str, list[float]]:
        """Have it take one measure.

        Args:
            measure: of `contestants/answering.py`.
            times: samples.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"measure": measure, "times": times}).encode() + b"\n")
        return await self.heard()


@asynccontextmanager
async def started(command: Sequence[str], environment: Mapping[str, str]) -> AsyncIterator[Contestant]:
    """Start a contestant and end it afterwards."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaints:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=complaints,
            env=environment,
            limit=LINE_BYTES,
        )
        assert process.stdin is not None
        try:
            yield Contestant(process, complaints)
        finally:
            process.stdin.close()  # tells it to end
            try:
                await asyncio.wait_for(process.wait(), 10)
            except TimeoutError:
                process.kill()
                await process.wait()


def commands(peers: str | None, only: Sequence[str]) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Return how each contestant is started, and in which environment.

    Args:
        peers: the Python that the peers are installed in; None for ours only.
        only: names of contestants; none for all.
    """
    foreign = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    found = {name: ([sys.executable, str(SCRIPTS / "ours.py"), name], dict(os.environ)) for name in OURS}
    if peers is not None:
        found |= {name: ([peers, str(SCRIPTS / file), *more], foreign) for name, (file, *more) in PEERS.items()}
    return {name: how for name, how in found.items() if not only or name in only}


async def measured(
    contestants: Mapping[str, tuple[list[str], dict[str, str]]], *, rounds: int = ROUNDS, quick: bool = False
) -> dict[str, Any]:
    """Measure all contestants in turn, several rounds.

    Args:
        contestants: from `commands`.
        rounds: how often each takes its turn.
        quick: few samples, to see that it runs.

    Returns:
        What `kernel_report.text` shows.
    """
    before = os.getloadavg()
    figures: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in contestants}
    about: dict[str, dict[str, Any]] = {}
    absent: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        running: dict[str, Contestant] = {}
        for name, (command, environment) in contestants.items():
            child = await stack.enter_async_context(started(command, environment))
            try:
                about[name] = await child.heard()
                running[name] = child
            except AbsentError as error:
                absent[name] = str(error)
        for _ in range(rounds):
            for measure, (many, few) in TIMES.items():
                for name, child in list(running.items()):
                    times = 2 if quick else few if name in HEAVY else many
                    try:
                        answer = await child.asked(measure, times)
                    except AbsentError as error:
                        absent[name] = str(error)
                        del running[name]
                        continue
                    for title, values in answer.items():
                        figures[name][title] += values
    summed = summary(figures)
    return {
        "machine": {
            "cores": len(os.sched_getaffinity(0)),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "python": platform.python_version(),
            "load before": before,
            "load after": os.getloadavg(),
        },
        "versions": {name: number for one in about.values() for name, number in one["versions"].items()},
        "contestants": list(contestants),
        "absent": absent,
        "notes": {name: one["notes"] for name, one in about.items()},
        "figures": summed,
        "goals": goals(summed),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--peers", help="Python that has the peers of bench/requirements.lock; without it ours only")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help=f"of {', '.join([*OURS, *PEERS])}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns of each; {ROUNDS} unless given")
    parser.add_argument("--quick", action="store_true", help="one round of few samples, to see that it runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    given = parser.parse_args()
    rounds = 1 if given.quick else given.rounds
    result = asyncio.run(measured(commands(given.peers, given.only), rounds=rounds, quick=given.quick))
    print(text(result))
    if given.json is not None:
        given.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
