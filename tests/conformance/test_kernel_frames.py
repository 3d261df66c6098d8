"""Data frames and Arrow tables, which enter every kernel as what they are."""

from typing import Any

import pytest
from kernel_cases import BUILT_IN, on, outputs

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.memex.kernels.base import Kernel
from memory_pipelines.memex.schema_tools import tool_of_schema
from memory_pipelines.memex.tools import tool_of

pd = pytest.importorskip("pandas", reason="the extra `frames` is not installed")
pa = pytest.importorskip("pyarrow", reason="the extra `frames` is not installed")


def sales() -> Any:
    return pd.DataFrame(
        {
            "n": [1, 2, 3],
            "at": pd.to_datetime(["2026-01-01", "2026-01-02", None]).tz_localize("Europe/Berlin"),
            "kind": pd.Categorical(["a", "b", "a"]),
            "word": ["x", None, "z"],
        },
        index=pd.Index([10, 20, 30], name="key"),
    )


TABLE = pa.table({"n": [1, 2], "inside": [{"a": 1}, {"a": 2}]})


@pytest.fixture(params=BUILT_IN)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_frames_in_scope_are_frames(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await kernel.put({"df": sales(), "table": TABLE, "more": {"list": [sales(), 1], "one": TABLE}})
        seen = await outputs(
            kernel,
            "type(df).__module__, type(df).__name__, df.shape, df.index.name, int(df.loc[20, 'n'])",
            "[str(kind) for kind in df.dtypes], int(df.n.sum()), df['at'].isna().tolist()",
            "type(table).__name__, table.column('inside').to_pylist()",
            "more['list'][0].equals(df), more['list'][1], more['one'].equals(table)",
        )
        assert seen == [
            "('pandas', 'DataFrame', (3, 4), 'key', 2)",
            "(['int64', 'datetime64[us, Europe/Berlin]', 'category', 'str'], 6, [False, False, True])",
            "('Table', [{'a': 1}, {'a': 2}])",
            "(True, 1, True)",
        ]

    on(name, test)


def test_frames_of_tools_are_frames(name: str) -> None:
    def typed(rows: int) -> pd.DataFrame:
        return sales().head(rows)

    def perhaps(there: bool) -> pd.DataFrame | None:
        return sales() if there else None

    def several() -> dict[str, pa.Table]:
        return {"a": TABLE, "b": TABLE}

    def untyped() -> Any:
        return TABLE

    described = tool_of_schema({"name": "described"}, lambda: {"rows": sales(), "count": 3})

    async def test(kernel: Kernel) -> None:
        await kernel.expose([*(tool_of(one) for one in (typed, perhaps, several, untyped)), described])
        seen = await outputs(
            kernel,
            "df = await typed(rows=2)\ndf.shape, df.n.tolist()",
            "(await perhaps(True)).shape, await perhaps(False)",
            "{key: one.num_rows for key, one in (await several()).items()}",
            "(await untyped()).num_rows",
            "found = await described()\nfound['rows'].shape, found['count']",
            "help(typed)",
        )
        assert seen[:5] == ["((2, 4), [1, 2])", "((3, 4), None)", "{'a': 2, 'b': 2}", "2", "((3, 4), 3)"]
        assert seen[5].startswith("async def typed(rows: int) -> pandas.DataFrame:")

    on(name, test)


def test_frames_do_not_leave_and_the_code_is_told_how_their_values_do(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await kernel.put({"df": sales(), "table": TABLE})
        for code, said in (
            ("submit(df)", "a DataFrame cannot leave the kernel; give it as plain values, with `.to_dict('records')`"),
            ("submit(table)", "a Table cannot leave the kernel; give it as plain values, with `.to_pylist()`"),
            ("submit({'n': df.n})", "n: a Series cannot leave the kernel; give it as plain values, with `.tolist()`"),
            ("submit(df['at'].tolist())", "[2]: NaT is no date; use None"),
        ):
            assert said in ((await kernel.run(code)).error or ""), code
        sums = await kernel.run("submit(df.groupby('kind', observed=True).n.sum().to_dict())")
        assert sums.value == {"a": 4, "b": 2}
        assert (await kernel.run("submit({df.n.iloc[0]: df.n.max()})")).value == {"1": 3}

    on(name, test)


def test_frames_without_an_arrow_form_are_refused_with_their_path(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
        mixed = pd.DataFrame({"a": [1, "x"]}, dtype=object)
        for frame in (twice, mixed):
            with pytest.raises(InvalidInputError, match=r"rows\[0\]: the DataFrame has no Arrow form"):
                await kernel.put({"rows": [frame]})
        with pytest.raises(InvalidInputError, match=r"raise Limits.frame_bytes"):
            await kernel.put({"df": pd.DataFrame({"a": pd.Series(range(20_000)) ** 3 % 7919})})

    on(name, test, frame_bytes=20_000)
