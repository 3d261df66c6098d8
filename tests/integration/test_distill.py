"""Distill with a real agent: offline rules over the shipped samples, and scripted answers of a model."""

import asyncio
import json
from collections import defaultdict
from typing import Any

import pytest
from stage_kit import SAID, desk, settings, turn, window

from memory_pipelines import samples
from memory_pipelines.errors import BadOutputError, RefusedError
from memory_pipelines.gateway.base import OFFLINE, Gateway
from memory_pipelines.gateway.offline import OfflineGateway
from memory_pipelines.guards.grounding import Grounding, ground
from memory_pipelines.importers.base import ImportOptions
from memory_pipelines.importers.native import NativeImporter
from memory_pipelines.records import Item, Session, SessionNews, Window
from memory_pipelines.redaction import redact, redact_json
from memory_pipelines.stages import windows
from memory_pipelines.stages.base import Distilled, Profile
from memory_pipelines.stages.distill import PROMPT_VERSION, distill, needs_model, small_task
from memory_pipelines.testing import ScriptedGateway
from memory_pipelines.wording import tokens_of

EXPECTED: dict[str, dict[str, Any]] = json.loads(samples.expected().read_text(encoding="utf-8"))


def run(read: Window, gateway: Gateway, *, model: str = "scripted", **more: Any) -> Distilled:
    return asyncio.run(distill(read, entries=(), desk=desk(gateway, model), settings=settings(**more)))


def sample_windows(profile: Profile = "small") -> dict[str, list[Window]]:
    news: dict[str, list[SessionNews]] = defaultdict(list)
    for made in NativeImporter().sessions(samples.conversations(), ImportOptions()):
        items = tuple(
            Item(
                session_id=made.session_id,
                id=f"{made.session_id}/{n}",
                position=n,
                data=redact_json(item.data),
                said_at=item.said_at or SAID,
                create_time=SAID,
            )
            for n, item in enumerate(made.items, start=1)
        )
        session = Session(
            store="s", id=made.session_id, actor_id=made.actor_id, root_id=made.session_id,
            create_time=SAID, update_time=SAID, last_activity_time=SAID,
        )  # fmt: skip
        news[made.actor_id].append(SessionNews(session=session, items=items))
    return {
        actor: windows.plan(one, pipeline_id="p", actor_id=actor, budget_tokens=2000, profile=profile)
        for actor, one in news.items()
    }


@pytest.fixture(scope="module")
def found() -> dict[str, list[Grounding]]:
    """What the offline model finds in the samples."""

    async def all_facts() -> dict[str, list[Grounding]]:
        facts: dict[str, list[Grounding]] = {}
        for actor, planned in sample_windows().items():
            facts[actor] = []
            for one in planned:
                distilled = await distill(one, entries=(), desk=desk(OfflineGateway(), OFFLINE), settings=settings())
                facts[actor] += ground(distilled.candidates, one).facts
        return facts

    return asyncio.run(all_facts())


@pytest.mark.parametrize("actor", EXPECTED)
def test_the_rules_find_what_the_samples_want_kept(found: dict[str, list[Grounding]], actor: str) -> None:
    texts = "\n".join(one.candidate.text for one in found[actor]).lower()
    missing = [
        wanted["about"]
        for wanted in EXPECTED[actor]["keep"]
        if not any(text.lower() in texts for text in wanted["any_of"])
    ]

    assert missing == []


@pytest.mark.parametrize("actor", EXPECTED)
def test_the_rules_leave_what_must_not_be_kept(found: dict[str, list[Grounding]], actor: str) -> None:
    stored = "\n".join(f"{one.candidate.text}\n{one.quote}" for one in found[actor]).lower()

    assert [text for text in (*EXPECTED[actor]["absent"], *EXPECTED[actor]["secrets"]) if text.lower() in stored] == []


def test_every_fact_of_the_samples_rests_on_the_actors_own_words(found: dict[str, list[Grounding]]) -> None:
    facts = [one for grounded in found.values() for one in grounded]

    assert len(facts) > 40
    assert all(one.quote and one.quote in one.turn.text and one.turn.speaker == "actor" for one in facts)


def test_facts_are_far_fewer_than_what_was_said(found: dict[str, list[Grounding]]) -> None:
    said = sum(
        tokens_of(one.text)
        for planned in sample_windows().values()
        for read in planned
        for one in read.turns
        if one.speaker == "actor"
    )

    assert sum(tokens_of(one.candidate.text) for facts in found.values() for one in facts) < 0.75 * said


def test_a_models_answer_becomes_candidates_with_dates() -> None:
    answer = [
        {"text": "User went to a support group yesterday.", "kind": "fact", "topic": "health"},
        {"text": "User prefers tea.", "kind": "preference", "topic": "food", "mood": "sure"},
    ]
    gateway = ScriptedGateway([f"Here you are:\n```json\n{json.dumps(answer)}\n```"])
    distilled = run(window(turn("I went to a support group yesterday, and I prefer tea.")), gateway)

    assert [one.text for one in distilled.candidates] == [
        "User went to a support group yesterday (2023-05-07).",
        "User prefers tea.",
    ]
    assert gateway.requests[0].purpose == "distill"
    assert gateway.requests[0].answer_schema is not None


def test_an_empty_list_is_an_answer() -> None:
    assert run(window(turn("Lovely weather, isn't it?")), ScriptedGateway(["[]"])) == Distilled()


@pytest.mark.parametrize(
    "answer", ["", "Sure, I will remember that!", '[{"text": 3}]', '[{"text": "User likes', '{"facts": 7}']
)
def test_an_answer_that_cannot_be_read_is_an_error_and_never_no_facts(answer: str) -> None:
    with pytest.raises(BadOutputError):
        run(window(turn("I like tea.")), ScriptedGateway(lambda _: answer))


def test_a_refusal_is_an_error() -> None:
    with pytest.raises(RefusedError):
        run(window(turn("I like tea.")), ScriptedGateway(lambda _: "I'm sorry, but I can't help with that."))


def test_a_window_without_words_of_the_actor_costs_no_call() -> None:
    silent = window(turn("I live in Rome.", speaker="other"), turn("42", position=2, speaker="tool"))
    gateway = ScriptedGateway([])

    assert not needs_model(silent)
    assert not needs_model(window(turn("👍 … 123")))
    assert run(silent, gateway) == Distilled()
    assert gateway.calls == 0


def test_a_small_model_sees_the_actors_words_and_only_the_questions_of_others() -> None:
    read = window(
        turn("I am married for five years. What are your hobbies?", speaker="other"),
        turn("Painting and $running.", position=2),
        turn("The user is an administrator.", position=3, speaker="tool"),
        turn("Do you like tea?", position=4, speaker="other"),
        turn("Yes.", position=5),
        context=[turn("Hello! Who are you?", speaker="other")],
    )
    task = small_task(read, instructions="Keep allergies above all.")

    assert "What are your hobbies?" in task
    assert "Painting and $running." in task
    assert task.index("Do you like tea?") < task.index("Yes.")
    assert "Keep allergies above all." in task
    assert "[2023-05-08, Monday]" in task
    for unseen in ("married", "administrator", "Who are you?"):
        assert unseen not in task


def test_the_question_before_the_window_is_shown_with_its_answer() -> None:
    task = small_task(window(turn("Oslo."), context=[turn("Where do you live?", speaker="other")]))

    assert task.index("Where do you live?") < task.index("Oslo.")


def test_the_language_of_the_facts_is_named() -> None:
    assert "in 中文" in small_task(window(turn("我住在上海，负责供应链报表。")))
    assert "in español" in small_task(window(turn("Vivo en Madrid y trabajo en un banco.")))
    assert "in the language of the user's words" in small_task(window(turn("J'habite à Lyon.")))


def test_the_small_prompt_is_short() -> None:
    assert tokens_of(small_task(window(turn("I like tea.")))) < 300


def test_a_strong_model_reads_its_scope_and_submits_with_quotes() -> None:
    code = """```python
for turn in items:
    print(turn.role, turn.text)
submit([{"text": "User lives in Oslo.", "kind": "fact", "quote": "I live in Oslo", "topic": "home"}])
```"""
    gateway = ScriptedGateway([code])
    read = window(turn("Hi. I live in Oslo."))
    distilled = run(read, gateway, profile="strong", instructions="Write in English.")

    (fact,) = ground(distilled.candidates, read).facts
    assert (fact.candidate.text, fact.quote) == ("User lives in Oslo.", "I live in Oslo")
    shown = "".join(message.content for message in gateway.requests[0].messages)
    assert "Write in English." in shown
    assert "candidate_facts" in shown


def test_no_secret_of_the_samples_reaches_a_prompt() -> None:
    for actor, planned in sample_windows().items():
        for read in planned:
            task = small_task(read)
            assert redact(task) == task
            assert not any(secret in task for secret in EXPECTED[actor]["secrets"])


def test_the_version_tells_prompts_apart() -> None:
    assert PROMPT_VERSION.startswith("distill-")
    assert len(PROMPT_VERSION) > len("distill-")
