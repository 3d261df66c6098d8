"""`trajectory show`: a readable page, events for machines, and one clear line for a file that is none."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_pipelines.cli.main import main
from memory_pipelines.memex import Agent
from memory_pipelines.testing import ScriptedGateway

Show = Callable[..., tuple[int, str, str]]


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Show:
    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["memory-pipelines", "trajectory", "show", *words])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        seen = capsys.readouterr()
        return code, seen.out, seen.err

    return run


@pytest.fixture
def rollout(tmp_path: Path) -> str:
    """Two turns: an error after a tool call, then a submit."""

    def search(query: str) -> list[str]:
        """Find lines."""
        return [f"{query} [bold]one[/]"]

    gateway = ScriptedGateway(
        [
            "I look first.\n```python\nrows = await search('tea')\nprint(rows, '\\x1b[31mred')\n1 / 0\n```",
            "```python\nsubmit(len(rows))\n```",
        ]
    )
    agent = Agent(
        model="scripted", gateway=gateway, kernel="inprocess", tools=[search], result=int, trajectory="t.jsonl"
    )
    asyncio.run(agent.run("How many rows are there?"))
    return "t.jsonl"


def test_the_page_tells_the_rollout(show: Show, rollout: str) -> None:
    code, out, err = show(rollout)

    assert (code, err) == (0, "")
    lines = [line.strip() for line in out.splitlines()]
    for line in (
        "How many rows are there?",
        "I look first.",
        "rows = await search('tea')",
        'search(query="tea")',
        '-> ["tea [bold]one[/]"]',
        "ZeroDivisionError: division by zero",
        "submit(len(rows))",
        "turns     2",
        "calls     2",
    ):
        assert any(seen.startswith(line) for seen in lines), f"{line}\n{out}"
    assert "End  succeeded" in out
    assert "isolation" in out
    assert "```" not in out


def test_what_the_model_wrote_does_not_write_on_the_terminal(show: Show, rollout: str) -> None:
    out = show(rollout)[1]

    assert "\x1b" not in out
    assert "\\x1b[31mred" in out


def test_one_turn_and_turns_that_match(show: Show, rollout: str) -> None:
    second = show(rollout, "--turn", "2")[1]
    assert "Turn 2" in second
    assert "Turn 1" not in second

    first = show(rollout, "--grep", "Zero.*zero")[1]
    assert "Turn 1" in first
    assert "Turn 2" not in first

    assert show(rollout, "--grep", "coffee")[:2] == (0, "No turn matches.\n")


def test_events_for_machines(show: Show, rollout: str) -> None:
    events = json.loads(show(rollout, "--json")[1])
    assert [event["kind"] for event in events][:3] == ["header", "llm_request", "llm_response"]
    assert events[-1]["kind"] == "end"

    second = json.loads(show(rollout, "--json", "--turn", "2")[1])
    assert {event["turn"] for event in second} == {2}


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("absent.jsonl",), 1, "no trajectory at absent.jsonl"),
        (("empty.jsonl",), 2, "is empty"),
        (("other.jsonl",), 2, "line 1"),
        (("t.jsonl", "--turn", "9"), 1, "has 2"),
        (("t.jsonl", "--grep", "("), 2, "regular expression"),
        (("t.jsonl", "--turn", "0"), 2, "--turn"),
    ],
)
def test_a_mistake_is_one_clear_error(show: Show, rollout: str, words: tuple[str, ...], code: int, says: str) -> None:
    Path("empty.jsonl").touch()
    Path("other.jsonl").write_text("name,age\nana,7\n")

    done, out, err = show(*words)

    assert (done, out) == (code, "")
    assert says in err
    assert "Traceback" not in err


def test_a_cut_file_is_shown_as_far_as_it_goes(show: Show, rollout: str) -> None:
    content = Path(rollout).read_bytes()
    Path(rollout).write_bytes(content[: content.index(b'{"kind":"submit"') + 20])

    code, out, err = show(rollout)

    assert code == 0
    assert "submit(len(rows))" in out
    assert "no end" in out
    assert "ends in the middle of a line" in err
