"""What people and agents do with memory themselves survives the pipeline, and what they remove stays removed."""

from pathlib import Path

from stage import MEMORY, PIPELINE, SESSIONS, Play, honest, play, shown

from memory_pipelines.gateway.base import Request

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


def test_actors_without_sessions_and_entries_of_a_session_are_untouched(tmp_path: Path) -> None:
    with play(tmp_path) as stage:
        memories, now = stage.app.stores.memories, stage.app.clock()
        crowded = "- " + "x" * 9000 + "\n- twice\n- twice\n"
        alone = memories.create_entry(MEMORY, actor_id="zoe", path="/notes.md", content=crowded, author="zoe", now=now)
        bound = memories.create_entry(
            MEMORY, actor_id="ana", path="/draft.md", content=crowded, session_id="s1", author="ana", now=now
        )
        with_two_lines(stage)

        assert memories.get_entry(MEMORY, alone.id) == alone
        assert memories.get_entry(MEMORY, bound.id) == bound


def test_what_an_agent_writes_during_a_run_survives_it(tmp_path: Path) -> None:
    written: list[str] = []

    def answers(request: Request) -> str:
        if request.purpose == "distill" and "bicycle" in shown(request) and not written:
            path = next(iter(stage.memory("ana")))
            content = stage.memory("ana")[path] + "- Written by the agent meanwhile.\n"
            stage.app.memory.write(MEMORY, actor_id="ana", path=path, content=content)
            written.append(path)
        return honest(request)

    with play(tmp_path, answers) as stage:
        with_two_lines(stage)
        stage.say("ana", "s4", "I like my red bicycle.", day=2)

        assert stage.run().run.state == "SUCCEEDED"
        assert written
        assert "- Written by the agent meanwhile.\n" in stage.memory("ana")[written[0]]
        assert "red bicycle" in everything(stage)
        assert COFFEE in everything(stage)
