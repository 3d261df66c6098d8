"""Words are found in any script, best first."""

from pathlib import Path

import pytest

from memory_pipelines import connect

LINES = {
    "/units.md": "- I prefer metric units in reports",
    "/food.md": "- Me encanta el café con leche",
    "/order.md": "- 有效订单是指已付款并且没有退款的订单",
    "/home.md": "- أسكن في دبي مع عائلتي",
    "/work.md": "- I write reports about trucks",
    "/emoji.md": "- 🚀 launches on Friday",
}


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("metric units", "/units.md"),
        ("units metric", "/units.md"),
        ("UNITS", "/units.md"),
        ("cafe", "/food.md"),
        ("订单", "/order.md"),
        ("دبي", "/home.md"),
        ("friday launches", "/emoji.md"),
        ("reports trucks", "/work.md"),
    ],
)
def test_the_best_entry_comes_first(tmp_path: Path, query: str, best: str) -> None:
    app = connect(f"sqlite:///{tmp_path / 'memory.db'}")
    app.memory.create_store("things")
    for path, content in LINES.items():
        app.memory.write("things", actor_id="ana", path=path, content=content)
    app.memory.write("things", actor_id="ben", path="/units.md", content="- metric units, café, 订单")

    hits = app.memory.search("things", actor_id="ana", query=query)
    app.close()

    assert hits[0].entry.path == best
    assert {hit.entry.actor_id for hit in hits} == {"ana"}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    app = connect(f"sqlite:///{tmp_path / 'memory.db'}")
    app.memory.create_store("things")
    app.memory.write("things", actor_id="ana", path="/units.md", content="- metric")

    hits = app.memory.search("things", actor_id="ana", query="imperial")
    app.close()

    assert hits == []
