"""The journal of finished calls: what it keeps of an answer, and that it is found again."""

import asyncio
import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from memory_pipelines.gateway.base import Message, Request, Response, ToolCall, Usage
from memory_pipelines.memex import Agent
from memory_pipelines.runner.journal import JournalGateway
from memory_pipelines.testing import ScriptedGateway, calling

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ID = "call_9fK2mQ7vXb4LtR8sWz1NcY6d"  # as providers make them; it has the form of a secret
SECRET = "sk-proj-Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZg"


class Progress:
    """Keeps calls as the database does: as JSON."""

    def __init__(self) -> None:
        self.calls: dict[str, str] = {}

    def recall(self, pipeline: Any, actor_id: str, key: str) -> Any:
        return json.loads(self.calls[key]) if key in self.calls else None

    def record_call(self, *_: Any, key: str, response: Any, **__: Any) -> None:
        self.calls[key] = json.dumps(response)


def journal(gateway: ScriptedGateway, progress: Progress) -> JournalGateway:
    policy = SimpleNamespace(max_calls=None, max_tokens=None, max_cost=None)
    pipeline = cast("Any", SimpleNamespace(id="p", policy=policy))
    return JournalGateway(
        gateway,
        cast("Any", progress),
        pipeline=pipeline,
        run=cast("Any", SimpleNamespace(number=1)),
        actor_id="ana",
        stage="distill",
        clock=lambda: NOW,
    )


def ask(gateway: JournalGateway) -> Response:
    request = Request(purpose="distill", model="m", messages=(Message(role="user", content="?"),))
    return asyncio.run(gateway.complete(request))


def test_calls_come_back_with_their_ids_and_words() -> None:
    call = ToolCall(id=ID, name="search", arguments='{ "query":"tea" }')
    answer = Response(text="I look.", finish="tool_calls", tool_calls=(call,), usage=Usage(calls=1, prompt_tokens=9))
    progress = Progress()
    ask(journal(ScriptedGateway([answer]), progress))

    again = ask(journal(ScriptedGateway([]), progress))

    assert again == answer.model_copy(update={"usage": Usage()})


def test_secrets_in_arguments_are_not_kept_and_the_rest_stays_json() -> None:
    good = ToolCall(id="c1", name="search", arguments=json.dumps({"query": f"a \\ {SECRET}", "n": 2}))
    bad = ToolCall(id="c2", name="search", arguments=f'{{"query": "{SECRET}')
    progress = Progress()
    ask(journal(ScriptedGateway([Response(text="", tool_calls=(good, bad))]), progress))

    again = ask(journal(ScriptedGateway([]), progress))

    assert SECRET not in "".join(progress.calls.values())
    kept = json.loads(again.tool_calls[0].arguments)
    assert kept["n"] == 2
    assert kept["query"].startswith("a \\ ")
    assert again.tool_calls[1].arguments.startswith('{"query": "')


def test_a_rollout_of_native_calls_is_replayed_without_a_call() -> None:
    def double(number: int) -> int:
        """Double it."""
        return 2 * number

    first = calling(("double", {"number": 2}))
    named = first.model_copy(update={"tool_calls": (first.tool_calls[0].model_copy(update={"id": ID}),)})
    progress, values = Progress(), []
    for script in ([named, calling(("submit", {"value": 4}))], []):
        gateway = ScriptedGateway(script)
        agent: Agent[Any] = Agent(
            model="m", gateway=journal(gateway, progress), tools=[double], action_space="tools", result=int
        )
        values.append((asyncio.run(agent.run("2 + 2?")).value, gateway.calls))

    assert values == [(4, 2), (4, 0)]
