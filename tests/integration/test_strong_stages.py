"""The `strong` profile of the stages: code over live objects, several turns, in kernels as runs have them."""

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from stage_kit import SAID, desk, settings, turn, window

from memory_pipelines.errors import BadOutputError
from memory_pipelines.guards.grounding import ground
from memory_pipelines.records import Change, Entry, Fact, Source, Window
from memory_pipelines.runner.desk import RolloutDesk
from memory_pipelines.stages.base import Distilled, Merged
from memory_pipelines.stages.distill import distill
from memory_pipelines.stages.maintain import maintain
from memory_pipelines.stages.merge import merge
from memory_pipelines.stages.scope import spans
from memory_pipelines.stages.windows import join
from memory_pipelines.testing import ScriptedGateway

walled = pytest.mark.skipif(sys.platform != "linux", reason="the wall is made of parts of Linux")
KERNELS = ["inprocess", pytest.param("pool", marks=walled)]
OSLO = "I live in Oslo, near the old brewery."
TEA = "I like my tea without sugar."
DAY = datetime(2023, 4, 1, tzinfo=UTC)


def py(code: str) -> str:
    return f"I go on.\n```python\n{code}\n```"


def shown(gateway: ScriptedGateway, number: int) -> str:
    """All that a request showed the model."""
    return "\n".join(message.content for message in gateway.requests[number].messages)


def an_entry(path: str, *lines: str) -> Entry:
    return Entry(
        store="m",
        id=path,
        actor_id="tom",
        path=path,
        content="".join(f"- {line}\n" for line in lines),
        description=f"about {path}",
        source_type="DREAMER",
        version=1,
        create_time=DAY,
        update_time=DAY,
    )


def a_fact(text: str, *, day: int = 0) -> Fact:
    source = Source(session_store="s", session_id="one", item_id=f"i{day}", position=day + 1, item_hash="h", end=1)
    return Fact(
        id=f"{day}-{text}",
        actor_id="tom",
        text=text,
        kind="preference",
        quote=text,
        topic="preferences",
        source=source,
        observed_at=SAID + timedelta(days=day),
        pipeline_id="p",
        run=1,
        window_id="w",
        model="scripted",
        basis="b",
    )


def read(
    gateway: ScriptedGateway,
    *windows: Window,
    entries: Sequence[Entry] = (),
    at: RolloutDesk | None = None,
    **more: Any,
) -> Distilled:
    return asyncio.run(
        distill(
            join(windows),
            entries=entries,
            desk=at or desk(gateway),
            settings=settings(profile="strong", **more),
            parts=spans(windows),
        )
    )


def a_window(number: int, *texts: str) -> Window:
    """One of several windows that follow each other in one session."""
    turns = [turn(text, position=10 * number + n) for n, text in enumerate(texts)]
    made = window(*turns)
    segment = made.segments[0].model_copy(update={"first": 10 * number, "last": 10 * number + len(texts) - 1})
    return made.model_copy(update={"id": f"w{number}", "segments": (segment,), "tokens": 500})


class TestDistill:
    @pytest.mark.parametrize("kernel", KERNELS)
    def test_it_looks_takes_down_and_submits_in_several_turns(self, kernel: str) -> None:
        look = """print([entry.path for entry in entries], instructions, len(earlier))
w = windows[0]
for item in items[w.start:w.stop]:
    print(item.session, item.position, item.role, item.name, item.at.date(), item.text)"""
        take = f"""facts = [Candidate(text="The user lives in Oslo.", quote={OSLO!r}, topic="home")]
w = windows[1]
for item in items[w.start:w.stop]: print(item.text)"""
        end = """tea = Candidate(text="The user takes no sugar in tea.", kind="preference", quote="tea without sugar")
facts.append(tea)
print(await missing_quotes([fact.quote for fact in facts] + ["I live in Rome."]))
submit(facts)"""
        gateway = ScriptedGateway([py(look), py(take), py(end)])
        windows = (a_window(0, "Hello.", OSLO), a_window(1, TEA, "I saw that yesterday."))

        found = read(
            gateway,
            *windows,
            entries=[an_entry("/work.md", "Owns the pipeline")],
            at=desk(gateway, kernel=kernel),
            instructions="Only what lasts.",
        )

        facts = ground(found.candidates, join(windows)).facts
        assert [(one.candidate.text, one.candidate.kind, one.quote) for one in facts] == [
            ("The user lives in Oslo.", "fact", OSLO),
            ("The user takes no sugar in tea.", "preference", "tea without sugar"),
        ]
        first, second, third = (shown(gateway, number) for number in range(3))
        assert OSLO not in first
        assert "- items: list of Said(session, position, role, name, text, at), 4 items" in first
        assert "Only what lasts." in first
        assert "['/work.md'] Only what lasts. 0" in second
        assert f"s 1 actor None 2023-05-08 {OSLO}" in second
        assert TEA not in second
        assert TEA in third
        assert gateway.requests[0].answer_schema is None

    def test_quotes_are_held_against_the_actors_new_words(self) -> None:
        quotes = ["I live in Oslo", "i live  in oslo", "I live in Rome", "Where do you live", ""]
        gateway = ScriptedGateway([py(f"print(await missing_quotes({quotes}))"), py("submit([])")])

        read(gateway, window(turn("Where do you live?", speaker="other"), turn(OSLO, position=2)))

        assert "['I live in Rome', 'Where do you live', '']" in shown(gateway, 1)

    def test_the_rules_can_be_asked_about_a_part(self) -> None:
        code = "for w in windows: print([fact.text for fact in await candidate_facts(w.start, w.stop)])"
        gateway = ScriptedGateway([py(f"{code}\nprint(len(await candidate_facts()))"), py("submit([])")])

        read(gateway, a_window(0, OSLO), a_window(1, "Hello there!"), a_window(2, TEA))

        assert f"[{OSLO!r}]\n[]\n[{TEA!r}]\n2" in shown(gateway, 1)

    def test_a_value_of_the_wrong_type_goes_back_to_the_model(self) -> None:
        gateway = ScriptedGateway([py("print(items)\nsubmit([{'words': 3}])"), py("submit([])")])

        assert read(gateway, window(turn(OSLO))) == Distilled()
        assert "text" in gateway.requests[1].messages[-1].content

    @pytest.mark.parametrize(
        ("answers", "reason"),
        [
            ([py("print(items)")] * 10, "budget"),  # in circles: 8 turns, and 2 to read one window
            (["", "", ""], "empty"),
            (["Sure, I will remember that!"] * 2, "malformed"),
        ],
    )
    def test_work_that_comes_to_nothing_is_an_error_and_never_no_facts(self, answers: list[str], reason: str) -> None:
        gateway = ScriptedGateway(answers)

        with pytest.raises(BadOutputError) as raised:
            read(gateway, window(turn(OSLO)))

        assert raised.value.reason == reason
        assert gateway.calls == len(answers)

    def test_a_desk_with_less_patience_wins(self) -> None:
        gateway = ScriptedGateway([py("print(items)")] * 2)

        with pytest.raises(BadOutputError, match="turns"):
            read(gateway, window(turn(OSLO)), at=desk(gateway, turns=2))

    def test_a_long_history_is_told_to_be_taken_down_piece_by_piece(self) -> None:
        for count, long in ((6, False), (7, True)):
            gateway = ScriptedGateway([py("print(items)\nsubmit([])")])
            read(gateway, *(a_window(number, TEA) for number in range(count)), context_tokens=100_000)
            assert ("There are 7 windows, about 3,500 tokens" in shown(gateway, 0)) == long

        gateway = ScriptedGateway([py("print(items)\nsubmit([])")])
        read(gateway, *(a_window(number, TEA) for number in range(3)), context_tokens=4096)  # 1,500 of 1,365 tokens
        assert "There are 3 windows" in shown(gateway, 0)


class TestMerge:
    MEMORY = an_entry("/preferences.md", "Likes green tea with honey", "Wants short answers in English")

    def merged(self, gateway: ScriptedGateway, facts: Sequence[Fact], *entries: Entry, kernel: str) -> Merged:
        return asyncio.run(
            merge(
                facts,
                entries,
                ties={},
                earlier={},
                desk=desk(gateway, kernel=kernel),
                settings=settings(profile="strong", instructions="Keep it short."),
            )
        )

    @pytest.mark.parametrize("kernel", KERNELS)
    def test_it_searches_in_other_words_and_decides_in_batches(self, kernel: str) -> None:
        look = """for fact in facts:
    print(fact.label, fact.said, fact.text, [(line.label, line.text) for line in fact.near])
print(await search_entries("Oslo"), await read_entry("/preferences.md"))"""
        end = """home = (await search_entries("flat in Oslo"))[0]
decisions = [Decision(fact=facts[0].label, action="same", lines=[facts[0].near[0].label])]
decisions.append(Decision(fact=facts[1].label, action="replace", lines=[home.label]))
submit(decisions=decisions)"""
        gateway = ScriptedGateway([py(look), py(end)])
        facts = [a_fact("Likes green tea with lots of honey"), a_fact("Has a house by the sea with green tea", day=1)]

        merged = self.merged(gateway, facts, self.MEMORY, an_entry("/home.md", "Has a flat in Oslo"), kernel=kernel)

        assert merged.settled == {facts[0].id: "duplicate", facts[1].id: "merged"}
        contents = {change.path: change.content for change in merged.changes}
        assert "Oslo" not in contents["/home.md"]
        assert "house by the sea" in contents["/home.md"]
        assert "F2 2023-05-09 Has a house by the sea with green tea" in shown(gateway, 1)

    def test_a_small_memory_is_shown_at_once_and_a_large_one_is_not(self) -> None:
        end = py("submit(await suggest_merge())")
        facts = [a_fact("Likes green tea with lots of honey")]
        small, large = ScriptedGateway([end]), ScriptedGateway([end])

        self.merged(small, facts, self.MEMORY, kernel="inprocess")
        many = [an_entry(f"/notes-{n}.md", *(f"Note {n} of {m}" for m in range(60))) for n in range(20)]
        self.merged(large, facts, self.MEMORY, *many, kernel="inprocess")

        assert "Wants short answers in English" in shown(small, 0)
        assert "- entries: list of EntryLines(path, lines), 21 items" in shown(large, 0)
        assert len(shown(large, 0)) < 4 * 2_000 + 8_000
        assert "Note 19 of 59" not in shown(large, 0)

    def test_an_answer_without_decisions_is_an_error(self) -> None:
        gateway = ScriptedGateway([py("print(facts)\nsubmit(decisions=[{'fact': 1}])")] * 10)

        with pytest.raises(BadOutputError):
            self.merged(gateway, [a_fact("Likes green tea with lots of honey")], self.MEMORY, kernel="inprocess")


class TestMaintain:
    FILES = tuple(f"Keeps the {colour} file in drawer {n}" for n, colour in enumerate(["red", "blue"] * 8))
    LONG = an_entry("/notes.md", *FILES)
    WORK = an_entry("/work.md", "Owns the settlements pipeline")

    def maintained(self, gateway: ScriptedGateway, *entries: Entry, kernel: str) -> tuple[Change, ...]:
        strong = settings(profile="strong", max_entry_chars=400)
        return asyncio.run(maintain(entries, ties={}, desk=desk(gateway, kernel=kernel), settings=strong))

    @pytest.mark.parametrize("kernel", KERNELS)
    def test_one_rollout_sees_all_entries_and_no_line_is_lost(self, kernel: str) -> None:
        look = "print(entries[0].path, [line.text for line in await similar_entries('/work.md')])"
        end = """red = [line.label for entry in entries for line in entry.lines if " red " in line.text]
operations = [Operation(op="move", lines=red, to="/files.md"), Operation(op="drop", lines=["L2"], to="L1")]
submit(operations=operations)"""
        gateway = ScriptedGateway([py(look), py(end)])
        twin = an_entry("/settlements.md", "Owns the pipeline of settlements")

        changes = self.maintained(gateway, self.LONG, self.WORK, twin, kernel=kernel)

        contents = {change.path: change.content for change in changes}
        lines = "".join(contents.values()).splitlines()
        assert {f"- {line}" for line in self.FILES} <= set(lines)
        assert [line for line in contents["/files.md"].splitlines() if " blue " in line] == []
        assert "['Owns the pipeline of settlements']" in shown(gateway, 1)
        assert "Too long: /notes.md" in shown(gateway, 0)

    def test_entries_in_order_need_no_model(self) -> None:
        assert self.maintained(ScriptedGateway([]), self.WORK, kernel="inprocess") == ()
