"""Trajectories in the scope of another rollout, and recipes over them."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory_pipelines.errors import BadOutputError, InvalidInputError
from memory_pipelines.gateway.base import Request, Usage
from memory_pipelines.memex import Agent, Limits, Trajectory
from memory_pipelines.memex.events import Block, Header, LlmRequest, LlmResponse, Observed, Submitted, ToolCalled
from memory_pipelines.memex.kernels.opening import open_kernel
from memory_pipelines.memex.recipes import audit, parallel
from memory_pipelines.memex.views import view_of
from memory_pipelines.testing import ScriptedGateway


def py(code: str) -> str:
    return f"```python\n{code}\n```"


def agent(gateway: ScriptedGateway, **options: Any) -> Agent[Any]:
    return Agent(**{"model": "scripted", "gateway": gateway, "kernel": "inprocess", **options})


def rollout(**options: Any) -> Trajectory:
    def find(query: str) -> str:
        """Find it."""
        return query * 9_000

    gateway = ScriptedGateway([py("print(await find('tea'))"), py("submit(7)")])
    made = agent(gateway, tools=[find], limits=Limits(output_chars=400), **options)
    return asyncio.run(made.run("Count.")).trajectory


@pytest.mark.parametrize("kernel", ["inprocess", "subprocess"])
def test_a_trajectory_is_an_object_in_another_rollout_also_with_cut_observations(kernel: str, tmp_path: Path) -> None:
    rollout(trajectory=tmp_path / "t.jsonl")
    loaded = Trajectory.load(tmp_path / "t.jsonl")
    assert loaded.outputs[0].cut > 0
    code = """t = trajectories[0]
submit([t.task, t.ok, t.value, t.turns[0].code, t.turns[1].number, t.outputs[0].cut, len(t.tool_calls[0].result),
        [event.kind for event in t.grep('tea')], [block.code for block in t.blocks], t.usage.calls, len(t.children)])"""
    gateway = ScriptedGateway([py(code)])

    value = asyncio.run(agent(gateway, kernel=kernel).run("Look.", scope={"trajectories": [loaded]})).value

    assert value == [
        "Count.", True, 7, "print(await find('tea'))", 2, loaded.outputs[0].cut, 27_000,
        [event.kind for event in loaded.grep("tea")], ["print(await find('tea'))", "submit(7)"], 2, 0,
    ]  # fmt: skip
    assert "- trajectories: list of TrajectoryView(task, ok, value, usage, events), 1 item" in (
        gateway.requests[0].messages[1].content
    )


@pytest.mark.parametrize(
    ("pattern", "kinds"),
    [
        ("^turn$|^output$|^kind$|^milliseconds$|^prompt_tokens$|^process$", []),  # names of fields
        ("^tool_call$|^observation$", []),  # kinds
        ("^city$", ["tool_call"]),  # a key that code chose
        ("^Oslo$", ["tool_call"]),
        ("^Alice$", ["submit"]),
        ("^dark tea$", ["observation"]),
        ("^2026-03-01", ["header"]),
        (r"find\(", ["block"]),
    ],
)
def test_grep_finds_the_same_content_in_host_and_kernel(pattern: str, kinds: list[str]) -> None:
    trajectory = Trajectory(
        [
            Header(
                at=datetime(2026, 3, 1, 9, tzinfo=UTC),
                model="m",
                purpose="p",
                action_space="memex",
                kernel="pool",
                isolation={"process": True},
            ),
            LlmRequest(turn=1, messages=2, prefix="aa"),
            LlmResponse(turn=1, text="I look.", finish="stop", usage=Usage(calls=1, prompt_tokens=10)),
            Block(turn=1, number=1, namespace="main", code="await find(city='Oslo')", origin="model"),
            ToolCalled(turn=1, name="find", args={"city": "Oslo"}, result=[1], milliseconds=1),
            Observed(turn=1, number=1, output="dark tea", cut=0, error=None, state="kept", milliseconds=1),
            Submitted(turn=1, ok=True, value={"Alice": [3]}),
        ]
    )

    async def in_kernel() -> str:
        async with open_kernel("inprocess") as kernel:
            await kernel.put({"t": view_of(trajectory)})
            return (await kernel.run(f"[event.kind for event in t.grep({pattern!r})]")).output

    assert [event.kind for event in trajectory.grep(pattern)] == kinds
    assert asyncio.run(in_kernel()) == repr(kinds)


def test_several_rollouts_and_an_aggregator(tmp_path: Path) -> None:
    given = iter(["base\nsubmit(1)", "base\nsubmit(2)", "submit('no number')"])

    def answer(request: Request) -> str:
        if len(request.messages) > 2:
            return py("submit('still none')")
        return py(next(given))

    workers = ScriptedGateway(answer)
    judge = ScriptedGateway([py("submit(sum(t.value for t in trajectories) + base)")])

    done = asyncio.run(
        parallel(
            agent(workers, result=int),
            "Count.",
            3,
            aggregator=agent(judge, result=int),
            scope={"base": 10},
            folder=tmp_path,
        )
    )

    assert done.value == 13
    assert sorted(outcome.value for outcome in done.outcomes) == [1, 2]
    assert len(done.errors) == 1
    assert done.usage.calls == workers.calls + judge.calls
    assert {path.name for path in tmp_path.glob("*.jsonl")} == {f"rollout-{n}.jsonl" for n in (1, 2, 3)}


def test_when_every_rollout_fails_the_first_error_is_raised() -> None:
    judge = ScriptedGateway([])

    with pytest.raises(BadOutputError):
        asyncio.run(parallel(agent(ScriptedGateway(lambda _: "")), "Count.", 2, aggregator=agent(judge)))
    assert judge.calls == 0
    with pytest.raises(InvalidInputError, match="at least 1"):
        asyncio.run(parallel(agent(judge), "Count.", 0, aggregator=agent(judge)))


def test_an_audit_takes_labels_of_the_taxonomy_and_evidence_that_stands_there() -> None:
    def finding(label: str, evidence: str) -> str:
        return py(f"submit([{{'trajectory': 0, 'turn': 1, 'label': {label!r}, 'evidence': {evidence!r}}}])")

    gateway = ScriptedGateway(
        [py("print(trajectories[0].turns)"), finding("odd", "find"), finding("cut", "coffee"), finding("cut", "find")]
    )

    done = asyncio.run(
        audit([rollout()], {"cut": "printed too much"}, model="scripted", gateway=gateway, kernel="inprocess")
    )

    assert [(one.turn, one.label, one.evidence) for one in done.value] == [(1, "cut", "find")]
    assert gateway.calls == 4
    assert "do not stand in turn 1" in gateway.requests[-1].messages[-1].content
