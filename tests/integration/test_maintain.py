"""Maintain: entries are joined and split without losing a line, whoever decides."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from memory_pipelines.guards.changes import apply, check, nothing_lost
from memory_pipelines.memex.tools import Tool
from memory_pipelines.records import Change, Entry, Tie
from memory_pipelines.stages.base import StageSettings
from memory_pipelines.stages.maintain import maintain
from memory_pipelines.stages.maintain_task import Operations

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def an_entry(path: str, *lines: str, day: int = 0, **more: Any) -> Entry:
    made = NOW + timedelta(days=day)
    given = {"store": "m", "id": path, "actor_id": "tom", "path": path, "version": 3, "source_type": "DREAMER"}
    content = "".join(f"- {line}\n" for line in lines)
    return Entry.model_validate({**given, "content": content, "create_time": made, "update_time": made, **more})


class Rules:
    """Answers as the offline model does."""

    def __init__(self) -> None:
        self.tasks: list[str] = []

    async def ask(self, *, tools: Sequence[Tool] = (), task: str, result: Any, **_: Any) -> Any:
        self.tasks.append(task)
        return result.model_validate(await next(tool for tool in tools if tool.name == "suggest_maintenance").call({}))


class Scripted:
    def __init__(self, *operations: Mapping[str, Any]) -> None:
        self.operations = operations
        self.asked: list[Mapping[str, Any]] = []

    async def ask(self, **request: Any) -> Any:
        self.asked.append(request)
        return Operations.model_validate({"operations": self.operations})


class Silent:
    async def ask(self, **_: Any) -> Any:
        raise AssertionError("the model was asked without need")


def run(
    *entries: Entry, desk: Any = None, ties: Mapping[str, Sequence[tuple[str, str]]] | None = None, **more: Any
) -> tuple[Change, ...]:
    changes = asyncio.run(
        maintain(entries, ties=ties or {}, desk=desk or Rules(), settings=StageSettings(now=NOW, **more))
    )
    assert check(changes, entries, ()).changes == changes, "the guards let it pass"
    return changes


def after(changes: Sequence[Change], *entries: Entry) -> dict[str, str]:
    return apply(changes, entries)


TEA = an_entry("/preferences.md", "Likes tea with milk", "Wants short answers in English")
WORK = an_entry("/work.md", "Owns the settlements pipeline", "Runs the shared Dagster deployment")


def test_entries_in_order_are_left_alone_without_a_call() -> None:
    assert run(TEA, WORK, desk=Silent()) == ()
    assert run(desk=Silent()) == ()


def test_the_same_line_in_two_entries_is_folded_without_a_call() -> None:
    notes = an_entry("/notes.md", "Has a dog", "owns the  settlements pipeline", day=1)
    ties = {
        "/work.md": [("Owns the settlements pipeline", "f1")],
        "/notes.md": [("owns the settlements pipeline", "f2")],
    }

    changes = run(WORK, notes, ties=ties, desk=Silent())

    assert after(changes, WORK, notes) == {"/work.md": WORK.content, "/notes.md": "- Has a dog\n"}
    (tied,) = [change for change in changes if change.path == "/work.md"]
    assert tied.ties == (Tie(line="Owns the settlements pipeline", fact_id="f2"),)


def test_a_line_of_which_another_says_all_is_folded() -> None:
    longer = an_entry("/notes.md", "Likes green tea with milk and honey", day=1)

    changes = run(TEA, longer)

    assert after(changes, TEA, longer)["/preferences.md"] == "- Wants short answers in English\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Standup is at 9 with the data team", "Standup is at 10 with the data team"),
        ("Eats fish and meat", "Does not eat fish and meat"),
        ("Reports to Alice in the data team", "Reports to Boris in the data team"),
    ],
)
def test_lines_that_differ_in_what_matters_stay(one: str, other: str) -> None:
    assert run(an_entry("/work.md", one), an_entry("/notes.md", other), desk=Silent()) == ()


def test_entries_of_one_topic_are_joined_and_the_agents_one_is_kept() -> None:
    own = an_entry("/prefs.md", "Wants charts in blue", day=1, source_type="AGENT", description="Mine")

    changes = run(TEA, own)

    assert after(changes, TEA, own) == {"/prefs.md": own.content + TEA.content}
    kept = next(change for change in changes if change.path == "/prefs.md")
    assert kept.description == "Mine"
    assert {change.action for change in changes} == {"update", "delete"}


def test_an_oversized_entry_is_split_at_its_headings() -> None:
    sections = "".join(
        f"## {name}\n\n" + "".join(f"- {name} fact number {n} about {name}\n" for n in range(12)) + "\n"
        for name in ("Deploys", "Alerts", "Costs")
    )
    entry = an_entry("/work.md", content=f"# Work\n\n- Owns the platform\n\n{sections}")

    changes = run(entry, max_entry_chars=800)

    files = after(changes, entry)
    assert set(files) == {"/work.md", "/work-alerts.md", "/work-costs.md"}
    assert files["/work.md"].startswith("# Work\n\n- Owns the platform\n\n## Deploys\n\n- Deploys fact number 0")
    assert "Alerts" not in files["/work.md"]
    assert all(len(content) <= 800 for content in files.values())


def test_an_oversized_entry_of_one_topic_goes_on_in_numbered_parts() -> None:
    entry = an_entry("/work.md", *(f"Ticket {n} concerns thing {n * 7}" for n in range(100)))

    files = after(run(entry, max_entry_chars=1000), entry)

    assert set(files) == {"/work.md", "/work-2.md", "/work-3.md", "/work-4.md", "/work-5.md"}
    assert all(len(content) <= 1000 for content in files.values())
    assert sorted("".join(files.values()).splitlines()) == sorted(entry.content.splitlines())


def test_one_long_line_cannot_be_split_and_costs_no_call() -> None:
    assert run(an_entry("/work.md", "word " * 300), desk=Silent(), max_entry_chars=1000) == ()


def test_an_entry_too_long_for_the_model_is_split_by_the_rules() -> None:
    entry = an_entry("/work.md", *(f"Ticket {n} concerns thing {n * 7}" for n in range(3000)))

    files = after(run(entry, desk=Silent(), context_tokens=8192), entry)

    assert len(files) > 20
    assert all(len(content) <= 4000 for content in files.values())


LONG = an_entry(
    "/work.md",
    "Owns the settlements pipeline",
    "Flies to Oslo in June",
    "Runs the Dagster deployment",
    "-".join("x" * 60),
)


def test_a_model_may_move_lines() -> None:
    desk = Scripted({"op": "move", "lines": ["L2"], "to": "/travel.md"})

    files = after(run(LONG, desk=desk, max_entry_chars=200), LONG)

    assert files["/travel.md"] == "- Flies to Oslo in June\n"
    assert "Oslo" not in files["/work.md"]


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "drop", "lines": ["L1", "L2", "L3", "L4"], "to": "L1"}],
        [{"op": "move", "lines": ["L1", "L2"], "to": "/../x.md"}],
        [{"op": "move", "lines": ["L1"], "to": "other-actor/work.md"}],
        [{"op": "move", "lines": ["L1", "L2", "L3"], "to": "/preferences.md"}],
        [{"op": "move", "lines": ["L9"], "to": "/travel.md"}, {"op": "drop", "lines": ["L2"], "to": "L99"}],
        [{"op": "drop", "lines": ["L2"], "to": "L2"}, {"op": "drop", "lines": ["L1"], "to": "L2"}],
        [],
    ],
)
def test_steps_that_would_lose_lines_are_not_taken(operations: list[dict[str, Any]]) -> None:
    files = after(run(LONG, desk=Scripted(*operations), max_entry_chars=200), LONG)

    assert set("".join(files.values()).splitlines()) == set(LONG.content.splitlines())
    assert all(path.startswith("/work") for path in files)


def test_what_a_model_leaves_too_long_is_split_by_the_rules() -> None:
    entry = an_entry("/work.md", *(f"Ticket {n} concerns thing {n * 7}" for n in range(30)))

    files = after(run(entry, desk=Scripted(), max_entry_chars=600), entry)

    assert all(len(content) <= 600 for content in files.values())


def test_unrelated_entries_are_not_shown_to_the_model() -> None:
    desk = Scripted()

    run(LONG, TEA, desk=desk, max_entry_chars=200, instructions="Keep $ in mind.")

    (asked,) = desk.asked
    assert "milk" not in asked["task"]
    assert "Keep $ in mind." in asked["task"]


def test_prose_and_code_stay_where_they_are() -> None:
    prose = "This page is kept by hand and wraps\nover lines.\n\n```sql\nselect 1\n```\n\n"
    entry = an_entry("/work.md", content=prose + "".join(f"- Ticket {n} concerns thing {n * 7}\n" for n in range(30)))

    files = after(run(entry, max_entry_chars=600), entry)

    assert files["/work.md"].startswith(prose)


# Shrinking such memories takes minutes and shows little more.
QUICK = settings(deadline=None, max_examples=40, phases=[Phase.explicit, Phase.reuse, Phase.generate])
WORD = st.sampled_from(
    ["tea", "milk", "Lisbon", "report", "metric", "units", "9", "not", "travel", "deploy", "茶", "数据"]
)
LINE = st.lists(WORD, min_size=1, max_size=6).map(" ".join)
PATHS = ["/preferences.md", "/prefs/style.md", "/work.md", "/work-2.md", "/Work/notes.md", "/笔记.md"]


@st.composite
def memories(draw: st.DrawFn) -> list[Entry]:
    entries: list[Entry] = []
    for path in draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=5)):
        blocks = draw(st.lists(st.tuples(st.sampled_from(["", "## Food\n", "# Work\n"]), st.lists(LINE, max_size=8))))
        content = "".join(head + "".join(f"- {line}\n" for line in lines) for head, lines in blocks)
        source = draw(st.sampled_from(["AGENT", "DREAMER"]))
        entries.append(an_entry(path, content=content, day=draw(st.integers(0, 3)), source_type=source))
    return entries


@given(memories())
@QUICK
def test_by_rules_nothing_is_lost_and_maintain_comes_to_rest(entries: list[Entry]) -> None:
    now: list[Entry] = [*entries]
    for _ in range(6):
        changes = run(*now, max_entry_chars=200)
        if not changes:
            break
        files = after(changes, *now)
        assert nothing_lost(entries, files)
        kept = {entry.path: entry for entry in now}
        now = [
            kept[path].model_copy(update={"content": content})
            if path in kept
            else an_entry(path, content=content, day=9)
            for path, content in files.items()
        ]
    else:
        raise AssertionError("maintain does not come to rest")


STEP = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["move", "drop"]),
        "lines": st.lists(st.integers(0, 20).map(lambda n: f"L{n}"), max_size=4),
        "to": st.sampled_from(["L1", "L2", "L3", "/work.md", "/travel.md", "/../x", "", "/preferences.md"]),
    }
)


@given(memories(), st.lists(STEP, max_size=8))
@QUICK
def test_whatever_a_model_answers_nothing_is_lost(entries: list[Entry], steps: list[dict[str, Any]]) -> None:
    changes = run(*entries, desk=Scripted(*steps), max_entry_chars=200)

    assert nothing_lost(entries, after(changes, *entries))
