"""What a block printed is kept in bounded memory, its head and its tail."""

from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.memex.kernels.capture import Output


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=30), max_size=30), st.integers(1, 60))
def test_short_output_is_kept_whole_and_long_output_by_its_ends(parts: list[str], limit: int) -> None:
    output = Output(limit)
    for part in parts:
        output.write(part)
    whole = "".join(parts)
    text, cut = output.close()
    if len(whole) <= limit:
        assert (text, cut) == (whole.removesuffix("\n"), 0)
    else:
        tail = limit // 4
        assert cut == len(whole) - limit
        assert text.startswith(whole[: limit - tail])
        assert text.endswith(whole[len(whole) - tail :].removesuffix("\n"))
        assert f"{cut:,} of {len(whole):,} characters cut" in text


def test_endless_output_takes_no_more_memory_than_is_kept() -> None:
    output = Output(1_000)
    for number in range(10_000):
        output.write(f"{number}\n" * 10)
        assert sum(map(len, output._tail)) <= 2 * 250 + 250  # twice the tail, and the write that was just added
    assert sum(map(len, output._head)) == 750
