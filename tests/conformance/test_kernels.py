"""What every kernel does with code, tools, scope and submit. Where kernels differ, their classes say so."""

from typing import Any

import pytest
from kernel_cases import BUILT_IN, FACT, JANUARY, OWN_PROCESS, Plan, Span, expose_tools, on, outputs

from memory_pipelines.errors import BudgetExceededError, InvalidInputError
from memory_pipelines.memex.kernels.base import Kernel
from memory_pipelines.memex.tools import Tool, schema_of, tool_of


@pytest.fixture(params=BUILT_IN)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_variables_stay_and_the_last_expression_is_shown(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        seen = await kernel.run("x = 2\nx + 1")
        assert (seen.output, seen.error, seen.state, seen.submitted) == ("3", None, "kept", False)
        blocks = (
            "def double(n):\n    return n * x",
            "x = 5",
            "double(4)",
            "print('a')\nprint('b')",
            "print(1)\n2",
            "None",
        )
        assert await outputs(kernel, *blocks) == ["", "", "20", "a\nb", "1\n2", ""]

    on(name, test)


def test_await_works_at_the_top_level(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        blocks = (
            "import asyncio\nasync def later(n):\n    await asyncio.sleep(0)\n    return n",
            "a = await later(1)\nb, c = await asyncio.gather(later(2), later(3))\n[a, b, c]",
            "[await later(n) for n in (4, 5)]",
            "later(6)",  # a last line that lacks its await
        )
        assert await outputs(kernel, *blocks) == ["", "[1, 2, 3]", "[4, 5]", "6"]

    on(name, test)


def test_errors_show_the_lines_of_the_block(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await kernel.run("def ratio(a, b):\n    return a / b")
        seen = await kernel.run("print('before')\nratio(\n    1, 0)")
        assert seen.output == "before"
        assert seen.error == (
            "block 2, line 2: ratio(\nblock 1, line 2 in ratio: return a / b\nZeroDivisionError: division by zero"
        )
        assert (
            await kernel.run("x = = 1")
        ).error == "block 3, line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax"
        nothing_ran = await kernel.run("y = 1\nreturn y")
        assert "SyntaxError: 'return' outside function" in (nothing_ran.error or "")
        assert "NameError" in ((await kernel.run("y")).error or "")

    on(name, test)


def test_running_a_loop_inside_the_loop_is_explained(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        seen = await kernel.run(
            "import asyncio\nloop = asyncio.get_running_loop()\nloop.run_until_complete(loop.create_future())"
        )
        assert "use `await` directly" in (seen.error or "")

    on(name, test)


def test_long_output_keeps_its_head_and_tail(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        seen = await kernel.run("for n in range(100_000):\n    print(n)")
        # 10 numbers of one digit, 90 of two, 900, 9_000, 90_000 of five, each with a newline
        total = 10 * 2 + 90 * 3 + 900 * 4 + 9_000 * 5 + 90_000 * 6
        assert seen.cut == total - 400
        assert seen.output.startswith("0\n1\n2\n3\n")
        assert f"[{total - 400:,} of {total:,} characters cut" in seen.output
        assert seen.output.endswith("\n99998\n99999")
        assert len(seen.output) < 400 + 120

    on(name, test, output_chars=400)


def test_a_value_whose_repr_fails_or_is_no_unicode_is_shown_all_the_same(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        blocks = ("class Odd:\n    def __repr__(self):\n        return 1 / 0\nOdd()", "print('\\ud800')")
        assert await outputs(kernel, *blocks) == ["<Odd, whose repr raised ZeroDivisionError>", "\\ud800"]

    on(name, test)


def test_exit_ends_only_the_block(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await kernel.run("x = 1")
        for leave in ("import sys\nsys.exit(3)", "exit()", "raise KeyboardInterrupt"):
            assert (await kernel.run(leave)).error
        assert await outputs(kernel, "x") == ["1"]

    on(name, test)


def test_names_of_the_kernel_are_restored_and_the_code_is_told(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await expose_tools(kernel)
        seen = await kernel.run("submit = find = 1\nprint = None")
        for taken in ("submit", "find", "print"):
            assert f"`{taken}` is the kernel's again" in seen.output
        assert await outputs(kernel, "print('back')", "(await find('x'))[0].text") == ["back", "'x'"]

    on(name, test)


def test_builtins_come_back_after_a_block_broke_them(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await kernel.run("__builtins__.clear()")
        await kernel.run("del __builtins__")
        assert await outputs(kernel, "len([1, 2])") == ["2"]

    on(name, test)


@pytest.mark.parametrize("name", OWN_PROCESS)
def test_the_process_comes_back_after_a_block_broke_it(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await kernel.run("import builtins\nfor one in list(vars(builtins)):\n    delattr(builtins, one)")
        await kernel.run("import sys\nsys.stdout = None")
        assert await outputs(kernel, "import sys\nsys.stdout.write('seen\\n')\nlen([1, 2])") == ["seen\n2"]

    on(name, test)


def test_tools_are_awaited_and_give_objects(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        called = await expose_tools(kernel)
        seen = await outputs(
            kernel,
            "hits = await find('tea', top=2)\n[hit.text for hit in hits], hits[1].at.year, hits[0]['kind']",
            "hits[0]",
        )
        assert seen == [
            "(['tea', 'tea'], 2026, 'note')",
            "Fact(text='tea', at=2026-01-02T03:04:00+00:00, kind='note')",
        ]
        assert called == ["tea"]

    on(name, test)


def test_calls_start_at_once_and_run_side_by_side(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        called = await expose_tools(kernel)
        # each `meet` returns only when the other one has been called too
        seen = await outputs(
            kernel,
            "import asyncio\nawait asyncio.gather(meet('a'), meet('b'))",
            "first = meet('c')\nsecond = meet('d')\n[await first, await second]",
            "task = asyncio.create_task(meet('e'))\n[await meet('f'), await task]",
        )
        assert seen == ["['a', 'b']", "['c', 'd']", "['f', 'e']"]
        assert sorted(called) == list("abcdef")

    on(name, test)


def test_a_forgotten_await_explains_itself(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await expose_tools(kernel)
        assert await outputs(kernel, "print(find('x'))") == ["<find(...) was not awaited: write `await find(...)`>"]
        for use in (
            *("find('x').text", "for one in find('x'): pass", "len(find('x'))", "if find('x'): pass"),
            *("find('x')[0]", "find('x') + 1", "1 + find('x')", "find('x') == 1", "find('x') < 2", "find('x')()"),
            *("async for one in find('x'): pass", "int(find('x'))", "sorted([find('x'), find('y')])"),
        ):
            assert "find(...) was not awaited" in ((await kernel.run(use)).error or ""), use
        assert "was `await` forgotten?" in ((await kernel.run("submit(find('x'))")).error or "")

    on(name, test)


def test_help_shows_how_a_tool_is_called(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await expose_tools(kernel)
        told = 'async def find(text: str, top: int = 1) -> list[Fact]:\n    """Find facts."""'
        for block in ("help(find)", "help('find')"):
            (text,) = await outputs(kernel, block)
            assert text.startswith("class Fact:\n    text: str\n    at: datetime\n")
            assert text.endswith(f"\n\n{told}")
        assert await outputs(kernel, "help()", "help('elsewhere')") == ["meet\nfind\nfail", "'elsewhere'"]

    on(name, test)


def test_text_that_holds_json_says_how_to_read_it(name: str) -> None:
    def fetch() -> Any:
        return '{"rows": [1, 2]}'

    async def test(kernel: Kernel) -> None:
        await kernel.expose([tool_of(fetch)])
        seen = await outputs(
            kernel, "text = await fetch()\ntext", "text.json()['rows'], text[0], isinstance(text, str), text + '!'"
        )
        assert seen == ["'{\"rows\": [1, 2]}'", "([1, 2], '{', True, '{\"rows\": [1, 2]}!')"]
        for use in ("text['rows']", "text.rows"):
            assert "read it with `.json()`" in ((await kernel.run(use)).error or ""), use
        assert (await kernel.run("submit(text)")).value == '{"rows": [1, 2]}'

    on(name, test)


def test_names_that_are_no_python_are_mapped_back(name: str) -> None:
    fields = {"class": {"type": "string"}, "a-b": {"type": "integer"}, "a_b": {"type": "integer"}, "@id": {}}
    given: list[dict[str, object]] = []

    def echo(**arguments: object) -> dict[str, object]:
        given.append(arguments)
        return arguments

    schema = {"type": "object", "properties": fields}
    tool = Tool(name="echo", description="", parameters=schema, returns={"title": "Row", **schema}, function=echo)

    async def test(kernel: Kernel) -> None:
        await kernel.expose([tool])
        seen = await outputs(
            kernel,
            "row = await echo(class_='c', a_b2=1, a_b=2, id=3)\nrow.class_, row.a_b2, row.a_b, row.id, row['a-b']",
            "(await echo(**{'class': 'd'})).class_",
            "(await echo('e')).class_",
        )
        assert seen == ["('c', 1, 2, 3, 1)", "'d'", "'e'"]
        assert given == [{"class": "c", "a-b": 1, "a_b": 2, "@id": 3}, {"class": "d"}, {"class": "e"}]
        # what was not set is not sent as None, which the schema does not allow
        assert (await kernel.run("submit(Row(class_='f'))")).value == {"class": "f"}

    on(name, test)


def test_errors_of_tools_arrive_as_exceptions(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        called = await expose_tools(kernel)
        assert await outputs(kernel, "try:\n    await fail()\nexcept ToolError as error:\n    print(error)") == [
            "fail: ValueError: no such entry"
        ]
        wrong = await kernel.run("await find(text=3, most=1)")
        assert wrong.error == (
            "block 2, line 1: await find(text=3, most=1)\n"
            "ToolError: find: arguments do not fit\n"
            "text: Input should be a valid string\n"
            "most: Extra inputs are not permitted"
        )
        assert "text: a function cannot leave" in ((await kernel.run("await find(lambda: 1)")).error or "")
        assert "takes 2 arguments, got 3" in ((await kernel.run("await find('a', 1, 2)")).error or "")
        assert called == []

    on(name, test)


def test_an_error_that_no_code_can_mend_is_raised_to_the_owner(name: str) -> None:
    def ask() -> str:
        raise BudgetExceededError("no tokens left", limit=10, spent=11)

    async def test(kernel: Kernel) -> None:
        await kernel.expose([tool_of(ask)])
        with pytest.raises(BudgetExceededError):
            await kernel.run("await ask()")

    on(name, test)


def test_scope_values_are_objects(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        scope = {
            "fact": FACT,
            "facts": [FACT] * 3,
            "span": Span(start=4, inside=FACT),
            "mixed": {"rows": [1, {"fact": FACT}, "x"], "none": None},
            "now": JANUARY,
            "days": [JANUARY.date()],
        }
        await kernel.put(scope)
        seen = await outputs(
            kernel,
            "fact.text, fact.at - now",
            "len(facts), facts[2].kind",
            "span.start, span.inside.at.month",
            "mixed['rows'][1]['fact'].text, mixed['rows'][2], mixed['none']",
            "now.isoformat(), days[0].day",
        )
        assert seen == [
            "('likes tea', datetime.timedelta(0))",
            "(3, 'note')",
            "(4, 1)",
            "('likes tea', 'x', None)",
            "('2026-01-02T03:04:00+00:00', 2)",
        ]

    on(name, test)


def test_values_that_cannot_enter_are_refused_with_their_path(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        for scope, said in (
            ({"rows": [{"call": print}]}, r"rows\[0\].call: a builtin_function_or_method cannot enter"),
            ({"rows": {(1, 2): 3}}, "rows: a key that is a tuple"),
            ({"not a name": 1}, "'not a name'"),
            ({"submit": 1}, "'submit'"),
        ):
            with pytest.raises(InvalidInputError, match=said):
                await kernel.put(scope)

    on(name, test)


def test_namespaces_are_apart(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await expose_tools(kernel)
        await kernel.put({"x": 1})
        await kernel.put({"x": 2}, namespace="child")
        assert await outputs(kernel, "x") == ["1"]
        assert (await kernel.run("x", namespace="child")).output == "2"
        assert "NameError" in ((await kernel.run("find", namespace="child")).error or "")

    on(name, test)


def test_submit_ends_the_block_and_hands_the_value_over(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await kernel.expose([], result=schema_of(Plan, mode="validation"))
        await kernel.put({"facts": [FACT], "now": JANUARY})
        plain = {"text": "likes tea", "at": "2026-01-02T03:04:00Z", "kind": "note"}
        for submit, value in (
            ("submit(facts=facts)", {"facts": [plain]}),
            ("submit({'facts': facts, 'title': 'T'})", {"facts": [plain], "title": "T"}),
            (
                "submit(Plan(facts=[Fact(text='likes tea', at=now)]))",
                {"facts": [{**plain}], "title": None},
            ),
        ):
            seen = await kernel.run(f"print('before')\n{submit}\nprint('after')")
            assert (seen.error, seen.output, seen.submitted) == (None, "before", True)
            assert seen.value == value

    on(name, test)


def test_any_value_with_a_json_form_can_be_submitted(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        seen = await kernel.run(
            "import datetime, decimal, enum, dataclasses\n"
            "class Kind(enum.Enum):\n    A = 'a'\n"
            "@dataclasses.dataclass\nclass Row:\n    n: int\n    kind: Kind\n"
            "submit([Row(1, Kind.A), {2}, (None, True), decimal.Decimal('1.50'), datetime.date(2026, 1, 2), {3: 4.5}])"
        )
        assert seen.error is None
        assert seen.value == [{"n": 1, "kind": "a"}, [2], [None, True], "1.50", "2026-01-02", {"3": 4.5}]

    on(name, test)


def test_submit_that_does_not_fit_goes_on_as_an_error(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await kernel.expose([], result=schema_of(Plan, mode="validation"))
        await kernel.run("x = 1")
        for submit, said in (
            ("submit(facts=[])", "facts: List should have at least 1 item"),
            ("submit(facts=[{'text': 1, 'at': 'soon'}])", "facts[0].text: Input should be a valid string"),
            ("submit()", "value: Input should be"),
            ("submit(facts=[{'text': float('nan')}])", "facts[0].text: nan is not a JSON number"),
            ("submit(title='\\ud83d', facts=[])", "title: the text holds half a character pair"),
            ("submit(print)", "value: a method cannot leave the kernel"),
            ("a = []\na.append(a)\nsubmit(a)", "nested deeper"),
            ("submit(1, 2)", "submit takes one value"),
        ):
            seen = await kernel.run(submit)
            assert not seen.submitted
            assert seen.value is None
            assert said in (seen.error or ""), submit
        assert await outputs(kernel, "x") == ["1"]
        many = await kernel.run("submit(facts=[{}] * 20)")
        assert "... and 30 more" in (many.error or "")  # two fields lack in each of 20; ten are shown

    on(name, test)


def test_submit_before_an_error_does_not_count(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        seen = await kernel.run("try:\n    submit(1)\nexcept BaseException:\n    pass\n1 / 0")
        assert not seen.submitted
        assert "ZeroDivisionError" in (seen.error or "")

    on(name, test)
