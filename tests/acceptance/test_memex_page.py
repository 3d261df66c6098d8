"""The worked example of docs/memex.md gives the right numbers, and the table of what each form costs is true."""

import asyncio
import re
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memory_pipelines.memex import Agent, Limits, Outcome
from memory_pipelines.testing import ScriptedGateway, calling

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the page's kernel stands behind a wall of Linux")

PAGE = (Path(__file__).parents[2] / "docs" / "memex.md").read_text(encoding="utf-8")

# By SQL, where the page counts in Python: a customer reached a step who has it and all before it in the log.
REACHED = """
WITH took AS (SELECT DISTINCT customer_id, step FROM events)
SELECT segment, sum(a.step IS NOT NULL), sum(b.step IS NOT NULL), sum(c.step IS NOT NULL), sum(d.step IS NOT NULL)
FROM customers
LEFT JOIN took a ON a.customer_id = id AND a.step = 'visit'
LEFT JOIN took b ON b.customer_id = a.customer_id AND b.step = 'trial'
LEFT JOIN took c ON c.customer_id = b.customer_id AND c.step = 'invite'
LEFT JOIN took d ON d.customer_id = c.customer_id AND d.step = 'paid'
GROUP BY segment
"""


@pytest.fixture
def page() -> dict[str, Any]:
    """What the blocks of the page leave behind."""
    scope: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        exec(compile(code, "memex.md", "exec"), scope)
    return scope


def by_hand(page: dict[str, Any]) -> list[dict[str, Any]]:
    """The funnels, best first."""
    with closing(sqlite3.connect(page["SHOP"])) as shop:
        counted = {segment: counts for segment, *counts in shop.execute(REACHED)}
    found = [
        {
            "segment": segment,
            "reached": [visit, trial, invite, paid],
            "rates": pytest.approx([trial / visit, invite / trial, paid / invite]),
            "weakest": min((trial / visit, "trial"), (invite / trial, "invite"), (paid / invite, "paid"))[1],
        }
        for segment, (visit, trial, invite, paid) in counted.items()
    ]
    return sorted(found, key=lambda one: -one["reached"][3] / one["reached"][0])


def told(outcome: Outcome[Any]) -> list[dict[str, Any]]:
    return [funnel.model_dump() for funnel in outcome.value]


def test_both_forms_give_what_a_query_gives(page: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    expected = by_hand(page)

    assert [one["segment"] for one in expected] == ["enterprise", "team", "solo"]
    assert told(page["by_tools"]) == expected
    assert told(page["by_code"]) == expected
    assert capsys.readouterr().out in PAGE


def test_the_log_holds_what_would_mislead_a_plain_count(page: dict[str, Any]) -> None:
    with closing(sqlite3.connect(page["SHOP"])) as shop:
        plain = dict(shop.execute("SELECT step, count(*) FROM events GROUP BY step").fetchall())
        joined = [sum(counts) for counts in zip(*(one[1:] for one in shop.execute(REACHED)), strict=True)]

    assert joined == [120, 80, 45, 23]
    assert (plain["visit"], plain["paid"]) == (120 + 30, 23 + 1)


def test_the_prompt_by_code_does_not_hold_the_rows(page: dict[str, Any]) -> None:
    code, native = page["by_code"].trajectory, page["by_tools"].trajectory

    # Tools that run at the same time end in any order.
    assert sorted(call.name for call in code.tool_calls) == ["customers"] * 3 + ["events"] * 4
    assert sorted(call.name for call in native.tool_calls) == ["customers"] * 3 + ["events"] * 4
    assert sum("customer_id" in seen.output for seen in native.outputs) == 4
    assert not any("customer_id" in seen.output or "Event(" in seen.output for seen in code.outputs)


def measured(page: dict[str, Any], space: str, answers: Sequence[Any]) -> tuple[int, int, int, int]:
    funnel: Any = page["Funnel"]
    agent: Agent[Any] = Agent(
        model="scripted",
        gateway=ScriptedGateway(answers),
        tools=[page["customers"], page["events"]],
        result=list[funnel],
        action_space=space,
        limits=Limits(output_chars=1_000_000) if space == "tools" else None,
    )
    done = asyncio.run(agent.run(page["TASK"]))
    usage = done.usage
    assert usage.calls == len(answers)
    return usage.calls, len(done.trajectory.tool_calls), usage.prompt_tokens, usage.completion_tokens


def test_the_table_of_costs_is_true(page: dict[str, Any]) -> None:
    code = f"```python\n{page['block']}```"
    look = "```python\nprint((await customers('solo'))[:2], (await events('visit'))[:2])\n```"
    native = [calling(*page["fetch"]), calling(("submit", {"value": page["said"]}))]
    found: dict[tuple[str, int], tuple[int, int, int, int]] = {}
    for times in (1, 10):
        page["open_shop"](times)
        shown = "native calls" if times == 1 else "native calls, with results shown whole"
        found[shown, 120 * times] = measured(page, "tools", native)
        found["code", 120 * times] = measured(page, "memex", [code])
        if times == 1:
            found["code, after a look at two rows of each", 120] = measured(page, "memex", [look, code])
    listed = {
        (name, int(people.replace(",", ""))): tuple(int(cell.replace(",", "")) for cell in cells.split(" | "))
        for name, people, cells in re.findall(r"^\| (\w[^|]*) \| ([\d,]+) \| ([\d, |]+) \|$", PAGE, re.MULTILINE)
    }

    assert listed.keys() == found.keys()
    for form, (answers, calls, read, written) in found.items():
        assert listed[form][:2] == (answers, calls), form
        assert listed[form][2:] == (pytest.approx(read, rel=0.1), pytest.approx(written, rel=0.1)), (form, read)
