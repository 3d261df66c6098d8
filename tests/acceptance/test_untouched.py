"""What the pipeline has no business with stays byte for byte, and what others write while it runs survives."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from stage import MEMORY, Play, honest, play, shown

from memory_pipelines.gateway.base import Request

COFFEE = "I like my coffee black and strong in the morning."
NOT_STRONG = "I like my coffee black, not strong, in the morning."
MEANWHILE = "- Written by the agent meanwhile."


def rows(folder: Path, actor_id: str, path: str) -> list[tuple[Any, ...]]:
    """The entry and its revisions as they are on disk."""
    with closing(sqlite3.connect(folder / "home" / "memory.db")) as opened:
        return [
            row
            for table in ("entries", "revisions")
            for row in opened.execute(f"SELECT * FROM {table} WHERE actor_id = ? AND path = ?", (actor_id, path))
        ]


def everything(stage: Play, actor: str = "ana") -> str:
    return "".join(stage.memory(actor).values())


CROWDED = "- " + "x" * 9000 + "\n- twice\n- twice\r\n\n  trailing   \n* I prefer tea.\n* I prefer tea, too"


def test_an_actor_without_sessions_is_untouched(tmp_path: Path) -> None:
    with play(tmp_path, max_entry_chars=200) as stage:
        stage.app.memory.write(MEMORY, actor_id="zoe", path="/notes.md", content=CROWDED, author="zoe")
        before = rows(tmp_path, "zoe", "/notes.md")
        assert CROWDED in str(before[0][5])
        for day in range(2):
            stage.say("ana", f"s{day}", f"I live in house number {day}.", day=day)
            assert stage.run().run.state == "SUCCEEDED"
            assert "zoe" not in {one.actor_id for one in stage.app.pipelines.results(str(day + 1), pipeline="support")}

        assert rows(tmp_path, "zoe", "/notes.md") == before


def test_an_entry_bound_to_a_session_is_untouched(tmp_path: Path) -> None:
    with play(tmp_path, max_entry_chars=200) as stage:
        stage.app.stores.memories.create_entry(
            MEMORY, actor_id="ana", path="/draft.md", content=CROWDED, session_id="s0", author="ana",
            now=stage.app.clock(),
        )  # fmt: skip
        before = rows(tmp_path, "ana", "/draft.md")
        for day in range(2):
            stage.say("ana", f"s{day}", f"I prefer tea number {day}, too.", day=day)
            assert stage.run().run.state == "SUCCEEDED"

        assert "number 1" in everything(stage)
        assert rows(tmp_path, "ana", "/draft.md") == before


def test_an_entry_that_nothing_new_is_about_is_untouched(tmp_path: Path) -> None:
    odd = "# About me\r\n\n  I am odd.\n\n* one\n1) two\n"
    with play(tmp_path) as stage:
        stage.app.memory.write(MEMORY, actor_id="ana", path="/about/me.txt", content=odd)
        before = rows(tmp_path, "ana", "/about/me.txt")
        stage.say("ana", "s1", "I live in Oslo.")
        assert stage.run().run.state == "SUCCEEDED"

        assert "Oslo" in everything(stage)
        assert rows(tmp_path, "ana", "/about/me.txt") == before


def add_a_line(stage: Play, path: str) -> None:
    content = stage.memory("ana")[path] + MEANWHILE + "\n"
    stage.app.memory.write(MEMORY, actor_id="ana", path=path, content=content, author="agent")


class Once:
    """Answers honestly, and does something else the first time that the model is asked for a purpose."""

    def __init__(self, purpose: str, about: str, do: Callable[[], None]) -> None:
        self.purpose, self.about, self.do = purpose, about, do
        self.done: list[str] = []

    def __call__(self, request: Request) -> str:
        if request.purpose == self.purpose and self.about in shown(request):
            if not self.done:
                self.done.append(self.purpose)
                self.do()
            elif self.purpose == "merge":
                self.done.append(self.purpose)
        return honest(request)


@pytest.mark.parametrize("purpose", ["distill", "merge"])
def test_a_line_written_while_the_model_thinks_survives(tmp_path: Path, purpose: str) -> None:
    answers = Once(purpose, "not strong", lambda: add_a_line(stage, next(iter(stage.memory("ana")))))
    with play(tmp_path, answers) as stage:
        stage.say("ana", "s1", COFFEE)
        assert stage.run().run.state == "SUCCEEDED"
        (path,) = stage.memory("ana")
        stage.say("ana", "s2", NOT_STRONG, day=1)

        assert stage.run().run.state == "SUCCEEDED"
        assert answers.done
        assert MEANWHILE in stage.memory("ana")[path].splitlines()
        assert "not strong" in everything(stage)
        authors = [one.author for one in stage.app.memory.history(MEMORY, actor_id="ana", path=path)]
        assert authors[1] == "agent"


def test_an_entry_deleted_while_the_model_thinks_stays_deleted(tmp_path: Path) -> None:
    def delete() -> None:
        stage.app.memory.delete(MEMORY, actor_id="ana", path=next(iter(stage.memory("ana"))), author="ana")

    answers = Once("merge", "not strong", delete)
    with play(tmp_path, answers) as stage:
        stage.say("ana", "s1", COFFEE)
        stage.run()
        stage.say("ana", "s2", NOT_STRONG, day=1)

        assert stage.run().run.state == "SUCCEEDED"
        assert answers.done
        assert "black and strong" not in everything(stage)
        assert "not strong" in everything(stage)  # news, said after what was deleted


def test_an_entry_made_at_the_same_place_while_the_model_thinks_survives(tmp_path: Path) -> None:
    def make() -> None:
        stage.app.memory.write(MEMORY, actor_id="ana", path=place[0], content=f"{MEANWHILE}\n", author="agent")

    answers = Once("distill", "Bergen", make)
    with play(tmp_path, answers) as stage:
        stage.say("ben", "s0", "I live in Oslo.")
        stage.run()
        place = list(stage.memory("ben"))
        stage.say("ana", "s1", "I live in Bergen.")

        assert stage.run().run.state == "SUCCEEDED"
        assert answers.done
        assert stage.memory("ana") == {place[0]: f"{MEANWHILE}\n- I live in Bergen.\n"}


def test_a_line_written_while_entries_are_put_in_order_survives(tmp_path: Path) -> None:
    lines = [
        f"- {text}"
        for text in (
            "I live in Oslo, in the white house by the harbour, with the green door.",
            "I prefer tables over charts in the monthly report of the sales team.",
            "I work for the purchasing department and answer for the suppliers of paper.",
            "First open the ledger, then check the sums, then send the summary to the board.",
        )
    ]
    asked: list[str] = []

    def answers(request: Request) -> str:
        if request.purpose != "maintain":
            return honest(request)
        asked.append(shown(request))
        if len(asked) == 1:
            add_a_line(stage, "/everything.md")
        labels = [line.partition(":")[0] for line in shown(request).splitlines() if "house by the harbour" in line]
        return json.dumps({"operations": [{"op": "move", "lines": labels, "to": "/profile.md"}]})

    with play(tmp_path, answers, max_entry_chars=200) as stage:
        stage.app.memory.write(MEMORY, actor_id="ana", path="/everything.md", content="\n".join(lines) + "\n")
        stage.say("ana", "s1", "hello")

        assert stage.run().run.state == "SUCCEEDED"
        assert len(asked) > 1, "made anew from what was written meanwhile"
        left = everything(stage).splitlines()
        assert MEANWHILE in left
        assert set(lines) <= set(left)
        assert len(stage.memory("ana")) > 1
