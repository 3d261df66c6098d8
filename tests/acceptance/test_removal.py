"""What a person removes from memory stays removed, whoever reads the same conversation again."""

import json
from pathlib import Path

from stage import MEMORY, PIPELINE, SESSIONS, Play, play

from memory_pipelines.importers.base import ImportOptions
from memory_pipelines.registry import IMPORTERS

COFFEE, TEA = "I like coffee with oat milk.", "I prefer green tea in the evening."


def with_two_lines(stage: Play) -> None:
    stage.say("ana", "s1", COFFEE, TEA)
    stage.say("ben", "s2", "I live in Oslo.")
    assert stage.run().run.state == "SUCCEEDED"
    assert COFFEE in everything(stage)
    assert TEA in everything(stage)


def everything(stage: Play) -> str:
    return "".join(stage.memory("ana").values())


def remove_coffee(stage: Play) -> None:
    for path, content in stage.memory("ana").items():
        if COFFEE in content:
            kept = "".join(line for line in content.splitlines(keepends=True) if COFFEE not in line)
            stage.app.memory.write(MEMORY, actor_id="ana", path=path, content=kept)


def test_a_removed_line_is_not_distilled_again(tmp_path: Path) -> None:
    with play(tmp_path) as stage:
        with_two_lines(stage)
        remove_coffee(stage)
        stage.say("ana", "s3", "I live in Porto.", day=1)
        stage.app.pipelines.backfill(PIPELINE)

        assert stage.run().run.state == "SUCCEEDED"
        assert COFFEE not in everything(stage)
        assert TEA in everything(stage)
        assert "Porto" in everything(stage)


def test_a_removed_entry_stays_removed_for_a_new_pipeline_and_a_new_import(tmp_path: Path) -> None:
    with play(tmp_path) as stage:
        with_two_lines(stage)
        for path in stage.memory("ana"):
            stage.app.memory.delete(MEMORY, actor_id="ana", path=path)
        stage.app.pipelines.delete(PIPELINE)
        stage.app.sessions.delete(SESSIONS, "s1")
        stage.say("ana", "s1-again", COFFEE, TEA)
        stage.app.pipelines.create(session_store=SESSIONS, memory_store=MEMORY, pipeline="second")

        assert stage.run("second").run.state == "SUCCEEDED"
        assert everything(stage) == ""
        assert "Oslo" in "".join(stage.memory("ben").values())


def test_a_removed_line_stays_removed_when_its_file_is_imported_again(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    said = [{"role": "user", "content": text, "at": "2026-03-01T12:00:00Z"} for text in (COFFEE, TEA)]
    history.write_text(json.dumps({"actor_id": "ana", "session_id": "s1", "items": said}) + "\n", encoding="utf-8")

    def bring_in() -> int:
        sessions = IMPORTERS.load("native")().sessions(history, ImportOptions())
        return stage.app.sessions.add_imported(SESSIONS, sessions).new_items

    with play(tmp_path) as stage:
        assert bring_in() == 2
        assert stage.run().run.state == "SUCCEEDED"
        assert COFFEE in everything(stage)
        remove_coffee(stage)
        stage.app.sessions.delete(SESSIONS, "s1")
        assert bring_in() == 2

        again = stage.run()

        assert (again.run.state, again.sessions) == ("SUCCEEDED", 1)
        assert again.dropped["removed"] == 1
        assert COFFEE not in everything(stage)
        assert everything(stage).count(TEA) == 1


def test_a_line_with_its_date_written_out_stays_removed_too(tmp_path: Path) -> None:
    moved = "I moved to Porto yesterday, it is warm."
    with play(tmp_path) as stage:
        stage.say("ana", "s1", moved, TEA)
        stage.run()
        ((path, content),) = stage.memory("ana").items()
        (line,) = [line for line in content.splitlines() if "Porto" in line]
        assert "(2026-02-28)" in line
        stage.app.memory.write(MEMORY, actor_id="ana", path=path, content=content.replace(line + "\n", ""))
        stage.app.pipelines.backfill(PIPELINE)

        assert stage.run().dropped["removed"] == 1
        assert "Porto" not in everything(stage)


def test_what_is_said_anew_after_a_removal_is_remembered(tmp_path: Path) -> None:
    with play(tmp_path) as stage:
        with_two_lines(stage)
        remove_coffee(stage)
        stage.say("ana", "s9", "I like coffee with oat milk again.", day=5)

        assert stage.run().run.state == "SUCCEEDED"
        assert "oat milk again" in everything(stage)
