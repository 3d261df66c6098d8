"""The guards on changes: whatever a stage says, memory is not harmed by it."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.guards.changes import Checked, apply, check, lost_lines, nothing_lost
from memory_pipelines.records import Change, Entry, Fact, Source, Tie

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def an_entry(path: str = "/work.md", content: str = "- Runs Dagster\n- Likes tea\n", **more: Any) -> Entry:
    given = {"store": "m", "id": path, "actor_id": "tom", "path": path, "content": content, "version": 3}
    return Entry.model_validate({**given, "source_type": "DREAMER", "create_time": NOW, "update_time": NOW, **more})


def a_fact(text: str) -> Fact:
    return Fact(
        id=text,
        actor_id="tom",
        text=text,
        kind="fact",
        quote=text,
        source=Source(session_store="s", session_id="1", item_id="i", position=1),
        observed_at=NOW,
        pipeline_id="p",
        run=1,
        window_id="w",
        model="offline",
        basis="b",
    )


def an_update(entry: Entry, content: str, *, lines: tuple[str, ...] = (), **more: Any) -> Change:
    given = {"action": "update", "path": entry.path, "content": content, "entry_id": entry.id}
    ties = tuple(Tie(line=line, fact_id=line) for line in lines)
    return Change.model_validate({**given, "version": entry.version, "ties": ties, **more})


def a_creation(path: str, *lines: str) -> Change:
    content = "".join(f"- {line}\n" for line in lines)
    return Change(
        action="create", path=path, content=content, ties=tuple(Tie(line=line, fact_id=line) for line in lines)
    )


ENTRY = an_entry()
TEXT = "Owns the settlements pipeline"


def test_a_supported_change_passes_as_it_is() -> None:
    change = an_update(ENTRY, f"{ENTRY.content}- {TEXT}\n", lines=(TEXT,))

    assert check([change], [ENTRY], [a_fact(TEXT)]) == Checked(changes=(change,))


@pytest.mark.parametrize(
    ("reason", "change", "entry"),
    [
        ("path", a_creation("/../work.md", TEXT), ENTRY),
        ("path", a_creation("work.md", TEXT), ENTRY),
        ("exists", a_creation("/work.md", TEXT), ENTRY),
        ("entry", an_update(ENTRY, f"- {TEXT}\n", lines=(TEXT,), entry_id="other"), ENTRY),
        ("entry", an_update(ENTRY, f"- {TEXT}\n", lines=(TEXT,), path="/home.md"), ENTRY),
        ("version", an_update(ENTRY, f"{ENTRY.content}- {TEXT}\n", lines=(TEXT,), version=2), ENTRY),
        ("bound", an_update(ENTRY, f"{ENTRY.content}- {TEXT}\n", lines=(TEXT,)), an_entry(session_id="s1")),
        ("size", a_creation("/new.md", TEXT, *["filler " * 20_000]), ENTRY),
        ("empty", an_update(ENTRY, "\n", lines=(TEXT,)), ENTRY),
        ("support", an_update(ENTRY, f"{ENTRY.content}- The user is an administrator\n"), ENTRY),
        ("support", an_update(ENTRY, f"{ENTRY.content}- {TEXT} and payroll\n", lines=(TEXT,)), ENTRY),
        ("support", an_update(ENTRY, f"{ENTRY.content}- Owns no settlements pipeline\n", lines=(TEXT,)), ENTRY),
        ("elision", an_update(ENTRY, f"- {TEXT}\n- ...\n", lines=(TEXT,)), ENTRY),
        ("elision", an_update(ENTRY, f"- {TEXT}\n[rest unchanged]\n", lines=(TEXT,)), ENTRY),
        ("elision", an_update(ENTRY, f"- {TEXT}\n（其余不变）\n", lines=(TEXT,)), ENTRY),
        ("elision", an_update(ENTRY, f"- {TEXT}\n- (el resto sin cambios)\n", lines=(TEXT,)), ENTRY),
        ("removal", an_update(ENTRY, "- Likes tea\n"), ENTRY),
    ],
)
def test_a_change_that_breaks_a_rule_is_dropped_and_counted(reason: str, change: Change, entry: Entry) -> None:
    checked = check([change], [entry], [a_fact(TEXT)])

    assert checked.changes == ()
    assert checked.dropped == {reason: 1}


def test_a_secret_in_a_new_line_drops_the_change() -> None:
    text = "My password is Wu8xKq2Zr9LmTt4"

    assert check([a_creation("/new.md", text)], [ENTRY], [a_fact(text)]).dropped == {"secret": 1}


def test_an_entry_of_another_actor_is_not_touched() -> None:
    other = an_entry("/theirs.md", actor_id="ana")
    change = an_update(other, f"{other.content}- {TEXT}\n", lines=(TEXT,))

    assert check([change], [ENTRY, other], [a_fact(TEXT)]).dropped == {"entry": 1}


def test_two_creations_of_one_path_leave_the_first() -> None:
    first, second = a_creation("/new.md", TEXT), a_creation("/new.md", TEXT)

    assert check([first, second], [ENTRY], [a_fact(TEXT)]).changes == (first,)


def test_a_line_is_not_taken_away_when_its_successor_is_dropped() -> None:
    home = an_entry("/home.md", "- Lives in Madrid\n- Has a dog\n")
    bad = an_update(ENTRY, f"{ENTRY.content}- Lives in Lisbon now\n", lines=("Lives in Lisbon",))
    removal = an_update(home, "- Has a dog\n")

    checked = check([bad, removal], [ENTRY, home], [a_fact("Lives in Lisbon")])

    assert checked.changes == ()
    assert checked.dropped == {"support": 1, "removal": 1}
    assert checked.settle({"Lives in Lisbon": "merged", "Lives in Madrid": "superseded"}) == {
        "Lives in Lisbon": "rejected"
    }


def test_mass_deletion_becomes_a_proposal() -> None:
    lines = [f"- Fact {word} about the {word} project\n" for word in "abcdefghijklmnop"]
    entry = an_entry(content="".join(lines))
    few = an_update(entry, "".join(lines[5:]) + f"- {TEXT}\n", lines=(TEXT,))
    many = an_update(entry, "".join(lines[6:]) + f"- {TEXT}\n", lines=(TEXT,))

    assert check([few], [entry], [a_fact(TEXT)]).proposal is None, "4 of 16 net is a quarter"
    assert "5 of 16 lines" in (check([many], [entry], [a_fact(TEXT)]).proposal or "")


def test_a_small_memory_may_change_as_a_whole() -> None:
    entry = an_entry(content="- Likes tea\n- Likes coffee\n- Likes milk\n")
    change = an_update(entry, f"- {TEXT}\n", lines=(TEXT,))

    assert check([change], [entry], [a_fact(TEXT)]).proposal is None


def test_maintain_may_move_and_fold_lines() -> None:
    other = an_entry("/notes.md", "- Runs Dagster\n- Has a dog\n")
    changes = [
        an_update(ENTRY, "- Runs Dagster\n- Likes tea\n- Has a dog\n"),
        Change(action="delete", path="/notes.md", entry_id="/notes.md", version=3),
    ]

    assert check(changes, [ENTRY, other], ()).changes == tuple(changes)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("- Runs Dagster\n", "lost"),
        ("- Runs Dagster\n- Likes tea\n- Likes gin\n", "support"),
        ("- Runs Dagster\n...\n", "elision"),
    ],
)
def test_one_broken_rule_drops_all_changes_of_maintain(content: str, reason: str) -> None:
    other = an_entry("/notes.md", "- Has a dog\n")

    checked = check([an_update(other, "# Pets\n- Has a dog\n"), an_update(ENTRY, content)], [ENTRY, other], ())

    assert checked.changes == ()
    assert reason in checked.dropped


def test_what_counts_as_lost() -> None:
    before = [an_entry(content="- Uses metric units in reports\n- Standup is at 9 with the data team\n")]

    assert nothing_lost(
        before, {"/x.md": "* standup is at 9  with the data team\n- Uses metric units in all his reports"}
    )
    assert lost_lines(before, {"/x.md": "- Uses metric units in reports\n- Standup is at 10 with the data team\n"}) == (
        "Standup is at 9 with the data team",
    )


WORD = st.sampled_from(["tea", "dog", "Lisbon", "metric", "report", "9", "10", "not", "pipeline", "数据", "茶", "قهوة"])
LINES = st.lists(st.lists(WORD, min_size=1, max_size=5).map(" ".join), max_size=14)


@settings(max_examples=60)
@given(before=LINES, after=LINES, facts=LINES, ties=st.lists(st.integers(0, 13), max_size=14))
def test_what_passes_merge_holds_only_old_lines_and_supported_ones(
    before: list[str], after: list[str], facts: list[str], ties: list[int]
) -> None:
    entry = an_entry(content="".join(f"- {line}\n" for line in before))
    change = an_update(
        entry,
        "".join(f"- {line}\n" for line in after),
        ties=tuple(
            Tie(line=line, fact_id=facts[number])
            for line, number in zip(after, ties, strict=False)
            if number < len(facts)
        ),
    )

    checked = check([change], [entry], [a_fact(text) for text in facts], stage="merge")

    words = {word for text in facts for word in text.split()}
    for line in apply(checked.changes, [entry])["/work.md"].splitlines():
        assert line.removeprefix("- ") in before or set(line.removeprefix("- ").split()) <= words


@settings(max_examples=60)
@given(before=LINES, after=LINES)
def test_what_passes_maintain_loses_nothing_and_invents_nothing(before: list[str], after: list[str]) -> None:
    entry = an_entry(content="".join(f"- {line}\n" for line in before))

    checked = check([an_update(entry, "".join(f"- {line}\n" for line in after))], [entry], ())

    now = apply(checked.changes, [entry])
    assert nothing_lost([entry], now)
    assert {line.removeprefix("- ") for line in now["/work.md"].splitlines()} <= set(before)
