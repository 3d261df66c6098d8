"""The sample conversations: complete, ordered, and such that the expectations about them can fail."""

import json
import re
from collections import defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from memory_pipelines import samples
from memory_pipelines.importers.base import ImportOptions
from memory_pipelines.importers.native import NativeImporter
from memory_pipelines.records import ImportedSession
from memory_pipelines.redaction import redact

SESSIONS = list(NativeImporter().sessions(samples.conversations(), ImportOptions()))
EXPECTED: dict[str, dict[str, Any]] = json.loads(samples.expected().read_text(encoding="utf-8"))

BY_ACTOR: dict[str, list[ImportedSession]] = defaultdict(list)
for _session in SESSIONS:
    BY_ACTOR[_session.actor_id].append(_session)


def data(session: ImportedSession) -> list[dict[str, Any]]:
    return [item.data for item in session.items if isinstance(item.data, dict)]


def all_text(actor: str) -> str:
    return "\n".join(json.dumps(data(session), ensure_ascii=False) for session in BY_ACTOR[actor])


def said_by_actor(actor: str) -> list[str]:
    return [
        message["content"] if isinstance(message["content"], str) else message["content"][0]["text"]
        for session in BY_ACTOR[actor]
        for message in data(session)
        if message["role"] == "user"
    ]


def test_the_sample_has_the_promised_size():
    report = NativeImporter().check(samples.conversations(), ImportOptions())

    assert report.error_count == 0
    assert report.actors == 8
    assert report.sessions == len(SESSIONS) >= 44
    assert sum(len(session.items) for session in SESSIONS) == report.items >= 300
    assert sum(6 <= len(session.items) <= 20 for session in SESSIONS) >= 20


def test_it_spans_nine_months():
    report = NativeImporter().check(samples.conversations(), ImportOptions())

    assert report.first_at is not None
    assert report.last_at is not None
    assert report.first_at >= datetime(2026, 1, 1, tzinfo=UTC)
    assert report.last_at < datetime(2026, 10, 1, tzinfo=UTC)
    assert (report.last_at - report.first_at).days > 240


def test_times_go_forward_in_sessions_and_through_the_file():
    starts = [session.items[0].said_at for session in SESSIONS if session.items]

    assert all(before and after and before < after for before, after in pairwise(starts))
    for session in SESSIONS:
        times = [item.said_at for item in session.items if item.said_at]
        assert len(times) == len(session.items)
        assert all(before < after for before, after in pairwise(times)), session.session_id


@pytest.mark.parametrize(
    ("actor", "script"), [("李雪", r"[\u4e00-\u9fff]"), ("layla.haddad@example.com", r"[\u0600-\u06ff]")]
)
def test_two_actors_write_in_another_script(actor: str, script: str):
    said = said_by_actor(actor)

    assert all(re.search(script, text) for text in said)


def test_one_actor_writes_spanish():
    said = said_by_actor("ana.ruiz@example.com")

    spanish = [text for text in said if re.search(r"[áéíóúñ¿¡]|\b(el|la|que|gracias|vale|los)\b", text, re.IGNORECASE)]
    assert len(spanish) >= 0.9 * len(said)


def test_one_preference_is_said_twenty_times_in_other_words_and_corrected_last():
    said = said_by_actor("tom.becker@example.com")

    metric = [position for position, text in enumerate(said) if re.search(r"\bmetric\b", text, re.IGNORECASE)]
    imperial = [position for position, text in enumerate(said) if "imperial" in text]
    assert len(metric) == 20
    assert len({said[position] for position in metric}) == 20
    assert len(imperial) == 1
    assert imperial[0] > metric[-1]


def test_the_odd_sessions_are_there():
    silent = [s for s in SESSIONS if s.items and not any(message["role"] == "user" for message in data(s))]
    empty = [s for s in SESSIONS if not s.items]
    in_parts = [m for s in SESSIONS for m in data(s) if isinstance(m["content"], list)]

    assert [session.session_id for session in silent] == ["ops/2026-03-02"]
    assert [session.session_id for session in empty] == ["ops/2026-08-01"]
    assert len(in_parts) == 1


def test_every_tool_call_is_answered():
    for session in SESSIONS:
        calls = [call["id"] for message in data(session) for call in message.get("tool_calls", ())]
        results = [message["tool_call_id"] for message in data(session) if message["role"] == "tool"]
        assert calls == results, session.session_id
        for message in data(session):
            for call in message.get("tool_calls", ()):
                assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_each_actor_has_expectations():
    assert EXPECTED.keys() == BY_ACTOR.keys()
    assert sum(len(of["keep"]) for of in EXPECTED.values()) >= 40


@pytest.mark.parametrize("actor", EXPECTED)
def test_what_should_be_kept_was_said_by_the_actor(actor: str):
    said = said_by_actor(actor)

    for wanted in EXPECTED[actor]["keep"]:
        assert any(part in text for part in wanted["any_of"] for text in said), wanted["about"]
    for change in EXPECTED[actor]["outdated"]:
        old = [position for position, text in enumerate(said) if change["old"] in text]
        new = [position for position, text in enumerate(said) if any(part in text for part in change["unless"])]
        assert old, change["about"]
        assert old[0] <= new[-1], change["about"]


@pytest.mark.parametrize("actor", EXPECTED)
def test_what_should_be_absent_could_have_been_kept(actor: str):
    text = all_text(actor)

    for unwanted in EXPECTED[actor]["absent"] + EXPECTED[actor]["secrets"]:
        assert json.dumps(unwanted, ensure_ascii=False)[1:-1] in text, unwanted


def test_keeping_what_is_wanted_does_not_bring_in_what_is_not():
    for actor, of in EXPECTED.items():
        wanted = [text for group in of["keep"] for text in group["any_of"]]
        clash = [(text, bad) for text in wanted for bad in of["absent"] if bad in text]
        assert not clash, actor


@pytest.mark.parametrize(
    ("actor", "number", "rest"),
    [
        ("u-1042", 0, "The nightly load says access denied."),
        ("u-1042", 1, "AWS_REGION=eu-central-1"),
        ("u-1042", 2, "Is the port right?"),
        ("李雪", 0, "测试库连不上"),
    ],
)
def test_the_invented_credentials_are_found_and_the_words_around_them_left(actor: str, number: int, rest: str):
    secret = EXPECTED[actor]["secrets"][number]
    (message,) = [text for text in said_by_actor(actor) if secret in text]

    cleaned = redact(message)

    assert secret not in cleaned
    assert rest in cleaned
