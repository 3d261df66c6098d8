"""What is read out of a model's answer: the code to run, or why there is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.memex import fences
from memory_pipelines.memex.answers import read_answer, repeats
from memory_pipelines.memex.fences import scan

TICKS = "```"


def py(code: str) -> str:
    return f"{TICKS}python\n{code}\n{TICKS}"


CODE = {
    "one block with prose around": (f"I look first.\n\n{TICKS}python\nprint(1)\n{TICKS}\nThen we see.", ["print(1)"]),
    "py label, upper case": (f"{TICKS}Py\nx = 1\n{TICKS}", ["x = 1"]),
    "unlabelled": (f"{TICKS}\nx = 1\n{TICKS}", ["x = 1"]),
    "two blocks": (f"{TICKS}python\na = 1\n{TICKS}\nand\n{TICKS}python\nb = 2\n{TICKS}", ["a = 1", "b = 2"]),
    "json, then python": (f'{TICKS}json\n{{"a": 1}}\n{TICKS}\n{TICKS}py\ny = 1\n{TICKS}', ["y = 1"]),
    "python, then an unlabelled table": (f"{TICKS}python\ny = 1\n{TICKS}\nlike\n{TICKS}\na | b\n{TICKS}", ["y = 1"]),
    "fence inside triple quotes": (
        f"{TICKS}python\ntext = '''\n{TICKS}\ncode\n{TICKS}\n'''\n{TICKS}\nbye",
        [f"text = '''\n{TICKS}\ncode\n{TICKS}\n'''"],
    ),
    "markdown with sql in submit": (
        f"{TICKS}python\nsubmit('''# Title\n{TICKS}sql\nselect 1\n{TICKS}\n''')\n{TICKS}",
        [f"submit('''# Title\n{TICKS}sql\nselect 1\n{TICKS}\n''')"],
    ),
    "four ticks": (f"````python\ns = '''\n{TICKS}\n'''\n````", [f"s = '''\n{TICKS}\n'''"]),
    "tildes": ("~~~python\nx = 1\n~~~", ["x = 1"]),
    "CRLF": (f"{TICKS}python\r\nx = 1\r\ny = 2\r\n{TICKS}\r\n", ["x = 1\ny = 2"]),
    "indented fence": (f"  {TICKS}python\n  if x:\n      y = 1\n  {TICKS}", ["if x:\n    y = 1"]),
    "await at the top level": (
        py("rows = await sql('select 1')"),
        ["rows = await sql('select 1')"],
    ),
    "syntax error is the kernel's to report": (f"{TICKS}python\nx = = 1\n{TICKS}\nbye", ["x = = 1"]),
    "code tags": ("Now:\n<code>\nx = 1\n</code>\ndone", ["x = 1"]),
    "code tags in one line": ("<code>x = 1</code>", ["x = 1"]),
    "code tag inside a string": ("<code>\ns = '''\n</code>\n'''\n</code>", ["s = '''\n</code>\n'''"]),
    "thought before": (
        f"<think>maybe\n{TICKS}python\nwrong()\n{TICKS}\n</think>\n{TICKS}python\nx = 1\n{TICKS}",
        ["x = 1"],
    ),
    "thought whose opening tag was in the prompt": (
        f"hm, {TICKS}\n</think>\n\n{TICKS}python\nx = 1\n{TICKS}",
        ["x = 1"],
    ),
    "a tag in code is no thought": (
        py("s = s.replace('</think>', '')"),
        ["s = s.replace('</think>', '')"],
    ),
    "an invalid escape in the code does not warn the host": (py("p = '\\d'"), ["p = '\\d'"]),
    "line separators inside strings stay": (py("s = 'a\u2028b\x0c'"), ["s = 'a\u2028b\x0c'"]),
    "blocks after an imitated observation": (
        f"{TICKS}python\na = f()\n{TICKS}\nObservation: 7\n{TICKS}python\nsubmit(7)\n{TICKS}",
        ["a = f()"],
    ),
    "imitated output fence": (
        f"{TICKS}python\na = f()\n{TICKS}\n{TICKS}output\n7\n{TICKS}\n{TICKS}python\nsubmit(7)\n{TICKS}",
        ["a = f()"],
    ),
}


@pytest.mark.parametrize("case", CODE)
def test_blocks_are_found(case: str) -> None:
    text, blocks = CODE[case]

    answer = read_answer(text, "stop")

    assert list(answer.blocks) == blocks
    assert answer.problem is None
    assert not answer.refused


def test_hundreds_of_broken_blocks_do_not_hold_up_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(fences, "complete", lambda code: bool(tried.append(code)))

    read_answer(f"{TICKS}python\n(\n{TICKS}\n" * 300, "stop")

    assert len(tried) <= 300 * 40  # trying every closing line would be 300 * 301 / 2 times, each on a longer text


def test_what_imitates_an_observation_is_neither_run_nor_kept() -> None:
    answer = read_answer(f"{TICKS}python\nf()\n{TICKS}\n[observation]\n42 rows\n\nSo the answer is 42.", "stop")

    assert answer.imitated
    assert answer.kept == py("f()")


def test_prose_after_a_block_that_imitates_nothing_is_kept() -> None:
    answer = read_answer(f"{TICKS}python\nf()\n{TICKS}\nThe output shows the rows.", "stop")

    assert not answer.imitated
    assert answer.kept.endswith("The output shows the rows.")


NO_CODE = {
    "unterminated at the limit": (f"{TICKS}python\nfor i in ra", "length", "truncated"),
    "unterminated though it compiles": (f"{TICKS}python\nsubmit([1])", "stop", "truncated"),
    "cut inside a string that holds a fence": (f"{TICKS}python\ns = '''\n{TICKS}\nmore te", "length", "truncated"),
    "cut in prose": ("I will now look at the", "length", "truncated"),
    "cut in a thought": ("<think>so we could", "length", "truncated"),
    "empty": ("", "stop", "empty"),
    "white space": (" \n\t\n", "stop", "empty"),
    "nothing but a thought": ("<think>hm</think>\n", "stop", "empty"),
    "prose": ("The answer is 4.", "stop", "malformed"),
    "only another language": (f"{TICKS}sql\nselect 1\n{TICKS}", "stop", "malformed"),
    "an empty block": (py(""), "stop", "malformed"),
    "a loop up to the limit": (
        f"{TICKS}python\n" + "facts.append('likes tea')\n" * 80 + "facts.app",
        "length",
        "repetition",
    ),
}


@pytest.mark.parametrize("case", NO_CODE)
def test_answers_without_code_say_why(case: str) -> None:
    text, finish, problem = NO_CODE[case]

    answer = read_answer(text, finish)  # type: ignore[arg-type]

    assert answer.blocks == ()
    assert answer.problem == problem


def test_a_whole_block_before_a_cut_one_is_run() -> None:
    answer = read_answer(f"{TICKS}python\na = 1\n{TICKS}\n{TICKS}python\nb = [1,", "length")

    assert answer.blocks == ("a = 1",)
    assert answer.cut


JSON = {
    "bare": ('{"facts": [1, 2]}', "submit({'facts': [1, 2]})", "wrapped"),
    "bare list": ("[]", "submit([])", "wrapped"),
    "white space around": ('\n {"a": null}\n', "submit({'a': None})", "wrapped"),
    "fenced": (f'{TICKS}json\n{{"a": true}}\n{TICKS}', "submit({'a': True})", "wrapped"),
    "fenced without a label": (f'{TICKS}\n{{"a": 1}}\n{TICKS}', "submit({'a': 1})", "wrapped"),
    "fenced as python": (f'{TICKS}python\n{{"a": 1}}\n{TICKS}', "submit({'a': 1})", "wrapped"),
    "fence that never closes": (f'{TICKS}json\n{{"a": 1}}', "submit({'a': 1})", "wrapped"),
    "prose around": ('Sure! Here it is: {"a": "x"} Anything else?', "submit({'a': 'x'})", "wrapped"),
    "prose with brackets before": ('As [you] said {sic}: {"a": 1}', "submit({'a': 1})", "wrapped"),
    "thought before": ('<think>{"a": 0}?</think>{"a": 1}', "submit({'a': 1})", "wrapped"),
    "quotes, newlines, braces inside": (r'{"a": "he said \"}{\"\n"}', "submit({'a': 'he said \"}{\"\\n'})", "wrapped"),
    "half an emoji": (r'{"a": "\ud83d"}', "submit({'a': '\ufffd'})", "wrapped"),
    "trailing comma": ('{"a": [1, 2,],}', "submit({'a': [1, 2]})", "repaired"),
    "single quotes": ("{'a': 'x'}", "submit({'a': 'x'})", "repaired"),
    "bare keys in prose": ('So: {a: "x"} .', "submit({'a': 'x'})", "repaired"),
    "python in its place": (
        py("submit(await candidate_facts())"),
        "submit(await candidate_facts())",
        "model",
    ),
}


@pytest.mark.parametrize("case", JSON)
def test_json_in_every_dress_becomes_one_submit(case: str) -> None:
    text, block, origin = JSON[case]

    answer = read_answer(text, "stop", bound=True)

    assert answer.blocks == (block,)
    assert answer.origin == origin


NO_JSON = {
    "cut in the middle": ('{"facts": [{"text": "a"}, {"te', "length", "truncated"),
    "cut after a whole inner object": ('{"facts": [{"text": "a"}', "length", "truncated"),
    "mendable, but at the limit": ('{"a": 1,}', "length", "truncated"),
    "complete in prose, but at the limit": ('{"a": 1} and then I would', "length", "truncated"),
    "cut, though the provider says it stopped": ('{"facts": [{"text": "a"}, {"te', "stop", "truncated"),
    "inner value of a cut one": ('{"facts": [{"text": "a"}, ', "stop", "truncated"),
    "two values that differ": ('{"a": 1}\n{"a": 2}', "stop", "malformed"),
    "a number without a literal": ('{"a": 1e999}', "stop", "malformed"),
    "prose": ("There is nothing to say.", "stop", "malformed"),
    "empty": ("", "stop", "empty"),
    "the same item up to the limit": ('{"facts": [' + '{"text": "Jon dances"}, ' * 40, "length", "repetition"),
    "numbered items up to the limit": (
        "[" + ", ".join(f'{{"id": {n}, "t": "x"}}' for n in range(60)),
        "length",
        "repetition",
    ),
}


@pytest.mark.parametrize("case", NO_JSON)
def test_json_that_cannot_be_trusted_is_not_taken(case: str) -> None:
    text, finish, problem = NO_JSON[case]

    answer = read_answer(text, finish, bound=True)  # type: ignore[arg-type]

    assert answer.blocks == ()
    assert answer.problem == problem


def test_complete_json_is_taken_though_white_space_ran_to_the_limit() -> None:
    assert read_answer('{"a": 1}' + "\n" * 500, "length", bound=True).blocks == ("submit({'a': 1})",)


def test_the_value_of_the_wanted_type_is_found_among_others() -> None:
    text = 'For example [1, 2]. The answer: {"a": 1}'

    answer = read_answer(text, "stop", bound=True, fits=lambda value: isinstance(value, dict))

    assert answer.blocks == ("submit({'a': 1})",)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't assist with that.",
        "I’m sorry, I cannot help with this request.",
        "Sorry, I am unable to process this conversation.",
        "As an AI language model, I cannot comply.",
        "I won't do that.",
    ],
)
@pytest.mark.parametrize("bound", [True, False])
def test_refusals_are_recognised(text: str, bound: bool) -> None:
    assert read_answer(text, "stop", bound=bound).refused


@pytest.mark.parametrize(
    "text",
    [
        "I can't find the table yet.",
        f"Sorry, I can't help with the first part.\n{TICKS}python\nx = 1\n{TICKS}",
        'The user said "I cannot help with this".',
    ],
)
def test_what_only_sounds_like_a_refusal_is_none(text: str) -> None:
    assert not read_answer(text, "stop").refused


def test_a_refusal_that_the_provider_reports_needs_no_words() -> None:
    assert read_answer("", "refusal").refused


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("likes tea\n" * 40, True),
        ("".join(f"{n}. likes tea\n" for n in range(40)), True),
        ("a" * 400, True),
        ("one\ntwo\nthree\n" * 20, True),
        ("a fact\n" * 3, False),
        (
            "\n".join(
                f"fact about {word}" for word in ["tea", "coffee", "milk", "bread", "rice", "corn", "oats", "salt"]
            ),
            False,
        ),
        ("", False),
    ],
)
def test_loops_are_recognised(text: str, loops: bool) -> None:
    assert repeats(text) is loops


PARTS = [*"`~\n ax=1'\"[]{}<>/:", "```python\n", "```json\n", "\n```\n", "<think>", "</think>", "<code>", "</code>"]


@given(st.lists(st.sampled_from(PARTS), max_size=30).map("".join))
def test_no_answer_breaks_the_reader(text: str) -> None:
    for finish in ("stop", "length", "refusal"):
        for bound in (True, False):
            answer = read_answer(text, finish, bound=bound)
            assert bool(answer.blocks) + bool(answer.problem) + answer.refused == 1


@given(st.text(alphabet=st.characters(exclude_characters="\r`~<", exclude_categories=["Cs"])))
def test_code_comes_out_as_it_went_in(text: str) -> None:
    code = f"submit({text!r})"

    assert [fence.body for fence in scan(f"first\n{TICKS}python\n{code}\n{TICKS}\nlast").fences] == [code]
