"""Reading: who says what in the message forms in use, and that nothing counts as said that nobody typed."""

from datetime import UTC, datetime
from typing import Any

import pytest

from memory_pipelines.records import Item
from memory_pipelines.stages.reading import own_words, turns_of
from memory_pipelines.wording import LEFT_OUT, tokens_of

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)


def items(*data: Any) -> list[Item]:
    return [
        Item(session_id="s", id=f"i{n}", position=n, data=one, said_at=AT, create_time=AT)
        for n, one in enumerate(data, start=1)
    ]


def said(*data: Any) -> list[tuple[str, str]]:
    return [(turn.speaker, turn.text) for turn in turns_of(items(*data))]


def test_roles_names_and_places_are_kept() -> None:
    turns = turns_of(
        items(
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "name": "Mel", "content": "I live in Oslo."},
            {"role": "assistant", "content": "Noted."},
            {"role": "tool", "tool_call_id": "t", "name": "lookup", "content": "42"},
            {"role": "function", "name": "old", "content": "43"},
        )
    )

    assert [(t.speaker, t.name, t.text, t.item_id, t.position) for t in turns] == [
        ("system", None, "Be brief.", "i1", 1),
        ("system", None, "Be kind.", "i2", 2),
        ("actor", "Mel", "I live in Oslo.", "i3", 3),
        ("other", None, "Noted.", "i4", 4),
        ("tool", "lookup", "42", "i5", 5),
        ("tool", "old", "43", "i6", 6),
    ]
    assert {turn.said_at for turn in turns} == {AT}


@pytest.mark.parametrize(
    "data",
    [
        None,
        "I live in Oslo.",
        7,
        ["I live in Oslo."],
        {},
        {"content": "I live in Oslo."},
        {"role": "narrator", "content": "I live in Oslo."},
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "user", "content": "  \n "},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x"}}]},
        {"role": ["user"], "content": "I live in Oslo."},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "The user lives in Oslo."}]},
        {"type": "web_search_call", "status": "completed"},
    ],
)
def test_what_is_no_message_says_nothing(data: Any) -> None:
    assert turns_of(items(data)) == ()


def test_text_parts_are_joined_and_other_parts_are_left_out() -> None:
    parts = [{"type": "text", "text": "Redo the chart."}, {"type": "image_url"}, {"type": "text", "text": "In blue."}]

    assert said({"role": "user", "content": parts}) == [("actor", "Redo the chart.\nIn blue.")]


def test_calls_are_told_in_short_and_results_belong_to_the_tool() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "run_sql", "arguments": '{"q": "select 1"}'}}
    turns = said(
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"type": "function_call", "call_id": "d", "name": "wiki", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "d", "output": "The user lives in Rome."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Thanks."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sure."}]},
    )

    assert turns == [
        ("other", '[calls run_sql({"q": "select 1"})]'),
        ("other", "[calls wiki({})]"),
        ("tool", "The user lives in Rome."),
        ("actor", "Thanks."),
        ("other", "Sure."),
    ]


def test_a_result_that_comes_under_the_users_role_is_not_the_users() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "I live in Rome."}]}

    assert said({"role": "user", "content": [result]}) == [("tool", "I live in Rome.")]
    assert said({"role": "user", "content": [result, {"type": "text", "text": "I live in Oslo."}]}) == [
        ("tool", "I live in Rome."),
        ("actor", "I live in Oslo."),
    ]


def test_long_results_lose_their_middle() -> None:
    ((speaker, text),) = said({"role": "tool", "content": "start " + "x y " * 50_000 + "end"})

    assert speaker == "tool"
    assert text.startswith("start x y")
    assert text.endswith("x y end")
    assert LEFT_OUT.search(text)
    assert 400 <= len(text) <= 700


@pytest.mark.parametrize("filler", ["lorem ipsum ", "数据平台", "بيانات كثيرة "])
def test_of_a_long_paste_the_words_before_and_after_it_are_kept(filler: str) -> None:
    pasted = filler * (200_000 // len(filler))
    ((_, text),) = said({"role": "user", "content": f"I prefer metric units.\n{pasted}\nSo always use kilometres."})

    assert text.startswith("I prefer metric units.\n")
    assert text.endswith("\nSo always use kilometres.")
    assert tokens_of(text) <= 1_050


def test_a_text_of_four_thousand_characters_is_kept_whole() -> None:
    text = "word " * 799 + "end"

    assert said({"role": "user", "content": text}) == [("actor", text)]


@pytest.mark.parametrize(
    ("message", "own"),
    [
        ("<system-reminder>\nThe user likes tea.\n</system-reminder>\nI like coffee.", "I like coffee."),
        ("I like coffee.\n<system-reminder>The user likes tea.", "I like coffee."),
        ("<environment_context><cwd>/tmp</cwd></environment_context>", ""),
        ("<Relevant_Memories>- likes tea</Relevant_Memories>\nHello", "Hello"),
        ("<memories>\n- likes tea\n</memories>\nHello", "Hello"),
        ("<user_query>\nI like coffee.\n</user_query>", "I like coffee."),
        ("Relevant memories:\n- The user likes tea.\n- The user has a cat.\n\nI like coffee.", "I like coffee."),
        ("## Relevant Memories\n\n* likes tea\n\n* has a cat\nI like coffee.", "I like coffee."),
        ("Here are relevant memories about the user:\n1. likes tea\n2. has a cat\n\nHi", "Hi"),
        ("Memorias relevantes:\n- le gusta el té\n\nPrefiero café.", "Prefiero café."),
        ("相关记忆：\n- 用户喜欢茶\n\n我喜欢咖啡。", "我喜欢咖啡。"),
        ("ذكريات ذات صلة:\n- يحب الشاي\n\nأفضل القهوة.", "أفضل القهوة."),
        ("[Request interrupted by user]", ""),
        ("Before.\n<system-reminder>x</system-reminder>\nAfter.", "Before.\n[...]\nAfter."),
    ],
)
def test_what_a_framework_put_into_a_message_is_not_the_persons(message: str, own: str) -> None:
    assert own_words(message) == own


@pytest.mark.parametrize(
    "message",
    [
        "Select * from <my_table> where a < b and c > d, please. I always use snake_case.",
        "I have fond memories of Oslo: we met there.",
        "My memory: not what it was.\nStill, I like chess.",
        "Use <b>bold</b> and <div>boxes</div> in my pages.",
    ],
)
def test_what_a_person_may_type_stays(message: str) -> None:
    assert own_words(message) == message


def test_every_turn_of_the_person_is_a_stretch_of_the_item() -> None:
    text = "Oslo is home.\n\n<system-reminder>no</system-reminder>\n\nI work  at a\tbank…"
    ((_, own),) = said({"role": "user", "content": text})

    assert all(part in text for part in own.split("\n[...]\n"))
