"""Merge: what becomes of facts, whoever decides, and that untouched lines keep their bytes."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory_pipelines.errors import BadOutputError
from memory_pipelines.guards.changes import check
from memory_pipelines.memex.tools import Tool
from memory_pipelines.records import Entry, Fact, FactKind, Source
from memory_pipelines.stages.base import Merged, StageSettings
from memory_pipelines.stages.decisions import Decisions
from memory_pipelines.stages.merge import merge

DAY = datetime(2026, 3, 1, 9, tzinfo=UTC)

PARAPHRASES = """
I prefer metric units in all my reports.
Please always use metric units in my reports.
Reports for me should be in metric units, even the short ones.
Remember that I like my reports in metric units.
I always want metric units in my reports.
I'd like you to keep my reports in metric units when others ask you to change them, too.
Use metric units, not feet and pounds, in my reports.
And my reports always use metric units.
As I said before, metric units for my reports.
I need the units in my reports to be metric.
For my reports I only want metric units.
New colleague, new rules, but don't forget that my reports are in metric units.
Stick to metric units whenever you write a report for me.
I still prefer metric units for every report.
Metric units only in my reports, please.
All my reports should be in metric units: kilometres, kilograms, Celsius.
I think in metric, so please write my reports in metric units.
Please make sure that the reports you send me use metric units.
Metric units in the report, please, as always.
Again: metric units in my reports, every time.
""".strip().splitlines()

CORRECTION = "From now on, use imperial units in my reports."


def a_fact(text: str, *, day: int = 0, kind: FactKind = "preference", topic: str = "preferences") -> Fact:
    return Fact(
        id=f"{day}-{text}",
        actor_id="tom",
        text=text,
        kind=kind,
        quote=text,
        topic=topic,
        source=Source(
            session_store="s", session_id="one", item_id=f"i{day}", position=day + 1, item_hash="h", start=0, end=1
        ),
        observed_at=DAY + timedelta(days=day),
        pipeline_id="p",
        run=1,
        window_id="w",
        model="offline",
        basis="b",
    )


def an_entry(path: str, content: str, *, made: datetime = DAY - timedelta(days=1), **more: Any) -> Entry:
    return Entry.model_validate(
        {
            "store": "m",
            "id": path,
            "actor_id": "tom",
            "path": path,
            "content": content,
            "source_type": "DREAMER",
            "version": 3,
            "create_time": made,
            "update_time": made,
            **more,
        }
    )


class Rules:
    """Answers as the offline model does: with what the rules suggest."""

    def __init__(self) -> None:
        self.tasks: list[str] = []

    async def ask(self, *, tools: Sequence[Tool] = (), task: str, result: Any, **_: Any) -> Any:
        self.tasks.append(task)
        return result.model_validate(await next(tool for tool in tools if tool.name == "suggest_merge").call({}))


class Scripted:
    """Answers with given decisions."""

    def __init__(self, *decisions: Mapping[str, Any]) -> None:
        self.decisions = decisions
        self.asked: list[Mapping[str, Any]] = []

    async def ask(self, **request: Any) -> Any:
        self.asked.append(request)
        return Decisions.model_validate({"decisions": self.decisions})


class Silent:
    async def ask(self, **_: Any) -> Any:
        raise AssertionError("the model was asked without need")


def run(
    facts: Sequence[Fact],
    entries: Sequence[Entry] = (),
    *,
    ties: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    earlier: Sequence[Fact] = (),
    desk: Any = None,
    **settings: Any,
) -> Merged:
    return asyncio.run(
        merge(
            facts,
            entries,
            ties=ties or {},
            earlier={fact.id: fact for fact in earlier},
            desk=desk or Rules(),
            settings=StageSettings(now=DAY, **settings),
        )
    )


def written(merged: Merged) -> str:
    return "".join(change.content for change in merged.changes)


class Memory:
    """Applies what merge says, as the store would, and keeps ties."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.ties: dict[str, list[tuple[str, str]]] = {}
        self.facts: dict[str, Fact] = {}
        self.states: dict[str, str] = {}

    def take(self, facts: Sequence[Fact], desk: Any = None) -> None:
        merged = run(facts, list(self.entries.values()), ties=self.ties, earlier=list(self.facts.values()), desk=desk)
        self.facts |= {fact.id: fact for fact in facts}
        self.states |= merged.settled
        for change in merged.changes:
            kept = [line.removeprefix("- ") for line in change.content.split("\n")]
            ties = [*self.ties.get(change.path, []), *((tie.line, tie.fact_id) for tie in change.ties)]
            self.ties[change.path] = [tie for tie in ties if tie[0] in kept]
            if change.action == "delete":
                del self.entries[change.path]
            else:
                self.entries[change.path] = an_entry(change.path, change.content)

    def lines(self) -> list[str]:
        return [line for entry in self.entries.values() for line in entry.content.split("\n") if line]


def test_no_facts_change_nothing_and_cost_nothing() -> None:
    assert run([], [an_entry("/work.md", "- Runs Dagster.\n")], desk=Silent()) == Merged()


@pytest.mark.parametrize("size", [1, 5, 21])
def test_twenty_paraphrases_and_a_correction_end_as_the_corrected_line(size: int) -> None:
    facts = [a_fact(text, day=day) for day, text in enumerate([*PARAPHRASES, CORRECTION])]
    memory = Memory()

    for at in range(0, len(facts), size):
        memory.take(facts[at : at + size])

    assert memory.lines() == [f"- {CORRECTION}"]
    assert memory.states.pop(facts[-1].id) == "merged"
    assert len(memory.states) == 20
    assert set(memory.states.values()) == {"superseded"}


def test_paraphrases_rest_on_one_line_before_they_are_corrected() -> None:
    facts = [a_fact(text, day=day) for day, text in enumerate(PARAPHRASES)]

    merged = run(facts)

    lines = written(merged).splitlines()
    assert lines[0] == f"- {PARAPHRASES[0]}"
    assert len(lines) <= 2, "a paraphrase that adds a name may stand beside the first"
    assert len(merged.changes[0].ties) == 20


def test_a_line_word_for_word_is_tied_without_a_call() -> None:
    entry = an_entry("/preferences.md", "# Mine\n\n*  I like TEA\n")
    fact = a_fact("I like tea")

    merged = run([fact], [entry], desk=Silent())

    (change,) = merged.changes
    assert (change.action, change.content, change.version) == ("update", entry.content, 3)
    assert [(tie.line, tie.fact_id) for tie in change.ties] == [("I like TEA", fact.id)]
    assert merged.settled == {fact.id: "duplicate"}


def test_a_new_fact_is_added_without_a_call_and_other_lines_keep_their_bytes() -> None:
    content = "# Preferences  \r\n\r\nThis file is kept by hand,\r\nmostly.\r\n\r\n*\tTea, no sugar \r\n"
    entry = an_entry("/preferences.md", content)

    merged = run([a_fact("Wants charts with blue bars")], [entry], desk=Silent())

    (change,) = merged.changes
    assert change.content == content + "*\tWants charts with blue bars\r\n"


def test_a_fact_without_a_topic_is_placed_by_the_model() -> None:
    desk = Scripted({"fact": "F1", "action": "add", "path": "/health.md"})

    merged = run([a_fact("Is allergic to nuts", kind="fact", topic="")], desk=desk)

    assert [change.path for change in merged.changes] == ["/health.md"]


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("I love jazz", "I hate jazz", "preference"),
        ("I live in Madrid and work from home", "Last month I moved from Madrid to Lisbon, I live there now", "fact"),
        ("Vivo en Madrid, así que usa la hora peninsular.", "Me mudé a Lisboa, ya no vivo en Madrid.", "fact"),
        ("我在上海办公室上班，负责报表。", "上周我从上海搬到了杭州，以后在杭州办公室上班。", "fact"),
        ("أسكن في عمّان منذ سنوات.", "انتقلت من عمّان إلى دبي، وأسكن الآن في دبي.", "fact"),
        ("Use finance.silver for revenue", "No, use finance.gold for revenue, not finance.silver", "correction"),
        ("Send the report at 9 every day", "Send the report at 10 every day", "preference"),
        ("库存用 scm.inventory_snapshot", "库存要用 scm.inventory_daily，不要用 scm.inventory_snapshot", "correction"),
    ],
)
def test_rules_replace_what_no_longer_holds(before: str, after: str, kind: FactKind) -> None:
    old = a_fact(before, kind="fact" if kind == "fact" else "preference", topic="profile")
    new = a_fact(after, day=1, kind=kind, topic="profile")

    for steps in ([[old, new]], [[old], [new]]):
        memory = Memory()
        for step in steps:
            memory.take(step)

        assert memory.lines() == [f"- {after}"]
        assert memory.states == {old.id: "superseded", new.id: "merged"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ran a marathon in 2024", "Ran a marathon in 2025"),
        ("Prefers metric units in reports", "Prefers short answers in reports"),
        ("Alice manages the data team", "Boris manages the data team"),
        ("Fährt montags nach Wien", "Fährt dienstags nach Graz"),
        ("El equipo de ventas usa tablas", "El equipo de datos usa gráficos"),
        ("我喜欢在北京喝咖啡", "我喜欢在上海喝茶"),
    ],
)
def test_rules_keep_different_facts_apart(one: str, other: str) -> None:
    merged = run([a_fact(one, kind="fact"), a_fact(other, day=1, kind="fact")])

    assert written(merged).splitlines() == [f"- {one}", f"- {other}"]


def test_an_older_fact_never_replaces_a_line() -> None:
    memory = Memory()
    memory.take([a_fact(CORRECTION, day=9, kind="correction")])
    late = a_fact(PARAPHRASES[0], day=2)

    memory.take([late])

    assert memory.lines() == [f"- {CORRECTION}"]
    assert memory.states[late.id] == "superseded"


def test_an_older_fact_replaces_nothing_though_the_model_says_so() -> None:
    memory = Memory()
    memory.take([a_fact(CORRECTION, day=9, kind="correction")])
    late = a_fact(PARAPHRASES[0], day=2)

    memory.take([late], desk=Scripted({"fact": "F1", "action": "replace", "lines": ["L1"]}))

    assert memory.lines() == [f"- {CORRECTION}"]
    assert memory.states[late.id] == "superseded"


ENTRY = an_entry("/preferences.md", "- Likes short answers in English\n- Likes green tea with honey\n- Lives in Graz\n")
NEAR = "Likes green tea with milk and honey"


@pytest.mark.parametrize(
    "decisions",
    [
        [],
        [{"fact": "F9", "action": "replace", "lines": ["L1"]}],
        [{"fact": "F1", "action": "same", "lines": ["L7"]}],
        [{"fact": "F1", "action": "replace", "lines": []}],
        [{"fact": "F1", "action": "replace", "lines": ["L2", "L3", "/preferences.md", "*"]}],
        [{"fact": "F1", "action": "add", "path": "/../other/secret.md"}],
        [{"fact": "F1", "action": "add", "path": "actors/boss/preferences.md"}],
        [{"fact": "F1", "action": "add", "lines": ["L1", "L2"], "path": "/preferences.md"}],
    ],
)
def test_decisions_that_cannot_be_taken_leave_the_rules_to_decide(decisions: list[dict[str, Any]]) -> None:
    merged = run([a_fact(NEAR, kind="fact")], [ENTRY], desk=Scripted(*decisions))

    assert [(change.path, change.content) for change in merged.changes] == [
        ("/preferences.md", f"{ENTRY.content}- {NEAR}\n")
    ]


def test_a_model_may_replace_only_lines_that_it_was_shown() -> None:
    desk = Scripted({"fact": "F1", "action": "replace", "lines": ["L1"]})

    merged = run([a_fact(NEAR, kind="fact")], [ENTRY], desk=desk)

    assert merged.changes[0].content == f"- Likes short answers in English\n- {NEAR}\n- Lives in Graz\n"
    assert "Graz" not in desk.asked[0]["task"]


def test_a_model_cannot_call_different_numbers_the_same() -> None:
    entry = an_entry("/work.md", "- The standup is at 9 with the platform team\n")
    fact = a_fact("The standup is at 10 with the platform team", kind="fact", topic="work")

    merged = run([fact], [entry], desk=Scripted({"fact": "F1", "action": "same", "lines": ["L1"]}))

    assert fact.text in merged.changes[0].content


def test_a_model_sees_what_rules_cannot() -> None:
    entry = an_entry("/work.md", "- Works as a nurse in the children's hospital\n")
    fact = a_fact("Is employed in the children's hospital as nursing staff", kind="fact", topic="work")
    desk = Scripted({"fact": "F1", "action": "same", "lines": ["L1"]})

    merged = run([fact], [entry], desk=desk)

    assert merged.changes[0].content == entry.content
    assert merged.settled == {fact.id: "duplicate"}


def test_facts_may_be_the_same_as_an_earlier_one_of_the_set() -> None:
    facts = [
        a_fact("Green tea, please, with honey", kind="fact", topic=""),
        a_fact("Honey goes into my tea, the green one", day=1),
    ]
    desk = Scripted(
        {"fact": "F1", "action": "add", "path": "/drinks.md"}, {"fact": "F2", "action": "same", "lines": ["F1"]}
    )

    merged = run(facts, desk=desk)

    assert written(merged).splitlines() == [f"- {facts[0].text}"]
    assert merged.settled[facts[1].id] == "duplicate"


def test_only_a_strong_model_may_skip_a_fact() -> None:
    fact = a_fact(NEAR, kind="fact")
    desk = Scripted({"fact": "F1", "action": "skip"})

    assert run([fact], [ENTRY], desk=desk, profile="strong") == Merged(changes=(), settled={fact.id: "skipped"})
    assert NEAR in written(run([fact], [ENTRY], desk=desk))


def test_same_never_swallows_what_a_fact_adds_or_takes_back() -> None:
    more = a_fact("Likes green tea with honey, and coffee after lunch", kind="fact")
    other = a_fact("Likes short answers in Spanish from now on", day=1)
    desk = Scripted(
        {"fact": "F1", "action": "same", "lines": ["L1"]}, {"fact": "F2", "action": "same", "lines": ["L2"]}
    )

    merged = run([more, other], [ENTRY], desk=desk)

    assert merged.changes[0].content == f"- {other.text}\n- {more.text}\n- Lives in Graz\n"


def test_a_fact_replaces_several_lines_only_where_it_is_close_to_each() -> None:
    entry = an_entry("/work.md", "- Works on the Payments team\n- The standup is at 9 with the platform team\n")
    fact = a_fact("Joined the Platform team, the Payments team is history", kind="fact", topic="work")

    merged = run([fact], [entry], desk=Scripted({"fact": "F1", "action": "replace", "lines": ["L1", "L2"]}))

    assert merged.changes[0].content == f"- {fact.text}\n- The standup is at 9 with the platform team\n"


def test_an_answer_that_cannot_be_read_fails_the_piece() -> None:
    class Broken:
        async def ask(self, **_: Any) -> Any:
            raise BadOutputError("the answer is not JSON", reason="malformed")

    with pytest.raises(BadOutputError):
        run([a_fact(NEAR, kind="fact")], [ENTRY], desk=Broken())


def test_instructions_and_only_near_lines_reach_the_model() -> None:
    entries = [ENTRY, *(an_entry(f"/t{n}.md", f"- Subject {n} of no relevance at all\n") for n in range(200))]
    desk = Scripted()

    run([a_fact(NEAR, kind="fact")], entries, desk=desk, instructions="Keep $5 notes in /prefs/style.md.")

    (asked,) = desk.asked
    assert "Keep $5 notes in /prefs/style.md." in asked["task"]
    assert len(asked["task"]) < 4000
    assert asked["answer_schema"]["properties"]["decisions"]["maxItems"] == 1


def test_many_doubtful_facts_are_asked_in_pieces_that_fit() -> None:
    entry = an_entry("/preferences.md", "- Likes green tea with honey\n")
    facts = [a_fact(f"Likes green tea with honey and flavour{n} {'very ' * n}", day=n, kind="fact") for n in range(40)]
    desk = Rules()

    merged = run(facts, [entry], desk=desk)

    assert 1 < len(desk.tasks) <= 8
    assert all(len(task) < 20_000 for task in desk.tasks)
    assert len(merged.settled) == 40


def test_the_strong_profile_can_search_and_name_any_line() -> None:
    seen: list[Any] = []

    class Strong:
        async def ask(self, *, tools: Sequence[Tool], scope: Mapping[str, Any], **_: Any) -> Any:
            by_name: dict[str, Callable[..., Any]] = {tool.name: tool.call for tool in tools}
            (hit,) = await by_name["search_entries"]({"query": "where does he live: Graz?"})
            assert await by_name["read_entry"]({"path": "/preferences.md"}) != []
            seen.append(scope["facts"])
            return Decisions.model_validate(
                {"decisions": [{"fact": "F1", "action": "replace", "lines": [hit["label"]]}]}
            )

    fact = a_fact("Has a flat by the sea, in Split, with green tea with honey", kind="fact")
    merged = run([fact], [ENTRY], desk=Strong(), profile="strong")

    assert "Graz" not in merged.changes[0].content
    assert (seen[0][0].label, [line.text for line in seen[0][0].near]) == ("F1", ["Likes green tea with honey"])


def test_text_of_facts_stays_one_line() -> None:
    merged = run([a_fact("- First this,\nthen that\u2028# and more")], desk=Silent())

    assert written(merged) == "- First this, then that # and more\n"


def test_an_agents_entry_is_appended_to() -> None:
    entry = an_entry(
        "/preferences.md", "User likes tea\nUser likes long walks", source_type="AGENT", description="Mine"
    )

    merged = run([a_fact("Wants charts with blue bars")], [entry], desk=Silent())

    (change,) = merged.changes
    assert change.content == "User likes tea\nUser likes long walks\nWants charts with blue bars\n"
    assert change.description == "Mine"


def test_what_a_corrected_line_says_besides_stays_with_its_facts() -> None:
    old = a_fact("I'm on the Payments team and I own the settlements pipeline.", kind="fact", topic="work")
    new = a_fact("I'm on the Platform team now, no longer in Payments.", day=1, kind="correction", topic="work")

    for steps in ([[old, new]], [[old], [new]]):
        memory = Memory()
        for step in steps:
            memory.take(step)

        assert memory.lines() == [f"- {new.text}", "- I own the settlements pipeline."]
        assert dict(memory.ties["/work.md"]) == {new.text: new.id, "I own the settlements pipeline.": old.id}
        assert set(memory.states.values()) == {"merged"}


def test_a_new_line_joins_the_section_that_it_belongs_to() -> None:
    entry = an_entry("/preferences.md", "# Mine\n\n## Drinks\n\n- Green tea\n\n## Charts\n\n- Bars for counts\n")

    merged = run([a_fact("Tea always comes with honey and milk for me")], [entry])

    assert "- Green tea\n- Tea always comes with honey and milk for me\n\n## Charts" in merged.changes[0].content


def test_every_change_of_the_rules_passes_the_guards() -> None:
    memory = Memory()
    for at, text in enumerate([*PARAPHRASES, CORRECTION]):
        facts = [a_fact(text, day=at)]
        entries = list(memory.entries.values())
        merged = run(facts, entries, ties=memory.ties, earlier=list(memory.facts.values()))

        assert check(merged.changes, entries, facts).changes == merged.changes
        memory.take(facts)
