"""`pipeline run --wait`: it ends, and says who is missing and what to type next."""

import json
from collections.abc import Callable, Iterator

import pytest
import typer
from terminal import Cli

from memory_pipelines import connect
from memory_pipelines.cli.waiting import wait_for
from memory_pipelines.errors import DeadlineError
from memory_pipelines.wiring import App

RUN = "memory-pipelines/sup/runs/1"


@pytest.fixture
def app(ready: Cli) -> Iterator[App]:
    opened = connect()
    yield opened
    opened.close()


class Clock:
    """Time that passes only by sleeping, with something that happens then."""

    def __init__(self, then: dict[int, Callable[[], object]]) -> None:
        self.seconds = 0.0
        self.then = then

    def sleep(self, seconds: float) -> None:
        for when in [when for when in self.then if self.seconds < when <= self.seconds + seconds]:
            self.then[when]()
        self.seconds += seconds


def wait(app: App, *, timeout: float | None = None, **then: Callable[[], object]) -> float:
    """Wait for a new run and return the seconds; `at_70` happens after 70."""
    asked = app.pipelines.run("sup", asked_by="cli")
    clock = Clock({int(name.removeprefix("at_")): act for name, act in then.items()})
    wait_for(app, asked, quiet=True, timeout=timeout, clock=lambda: clock.seconds, sleep=clock.sleep)
    return clock.seconds


def test_it_says_twice_a_minute_that_nobody_takes_the_run(app: App, capsys: pytest.CaptureFixture[str]) -> None:
    seconds = wait(app, at_70=lambda: app.pipelines.cancel(RUN))

    assert seconds == 70
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    for words in (f"{RUN} waits", "`memory-pipelines dev`", f"pipeline cancel {RUN}`", "pipeline run sup --here`"):
        assert words in said[0]


def test_it_says_nothing_while_an_orchestrator_looks(app: App, capsys: pytest.CaptureFixture[str]) -> None:
    app.stores.pipelines.seen_orchestrator(app.clock())

    wait(app, at_40=lambda: app.pipelines.cancel(RUN))

    assert capsys.readouterr().err == ""


def test_a_limit_ends_the_waiting_and_not_the_run(app: App) -> None:
    with pytest.raises(DeadlineError, match=f"within 20 s; {RUN} goes on.*pipeline cancel {RUN}"):
        wait(app, timeout=20)

    assert app.pipelines.get_run(RUN).state == "RUNNING"


def test_ctrl_c_ends_the_waiting_and_says_that_the_run_goes_on(app: App, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as end:
        wait(app, at_5=interrupt)

    assert end.value.exit_code == 130
    said = capsys.readouterr().err
    assert f"{RUN} goes on" in said
    assert f"`memory-pipelines pipeline cancel {RUN}`" in said
    assert app.pipelines.get_run(RUN).state == "RUNNING"


def test_the_command_takes_the_limit_and_a_refused_run_names_the_way_out(ready: Cli) -> None:
    late = ready("pipeline", "run", "sup", "--wait", "--timeout", "0", "--json")
    assert (late.code, late.out) == (1, "")
    warning, error = map(json.loads, late.err.splitlines())
    assert f"{RUN} waits" in warning["warning"]["message"]
    assert error["error"]["code"] == "DEADLINE_EXCEEDED"

    refused = ready("pipeline", "run", "sup", "--here")
    assert refused.code == 1
    way_out = f"pipeline cancel {RUN}"
    assert f"{RUN} is in flight; wait for it, or end it: `memory-pipelines {way_out}`" in refused.err
    assert ready(*way_out.split()).code == 0
    assert ready("pipeline", "run", "sup", "--here").code == 0

    assert ready("pipeline", "run", "sup", "--timeout", "5").code == 2
