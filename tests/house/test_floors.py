"""The rules of the house: who may import whom. Each fails when it saw no file."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "memory_pipelines"

FLOORS = {
    "errors": 1, "redaction": 1, "text": 1, "wording": 1, "signs": 1,
    "gateway": 2, "registry": 2, "names": 2,
    "memex": 3, "records": 3,
    "stores": 4, "importers": 4, "stages": 4, "guards": 4, "samples": 4,
    "service": 5, "runner": 5, "testing": 5,
    "wiring": 6, "settings": 6,
    "cli": 7, "api": 7, "orchestration": 7,
    "__main__": 8,
}  # fmt: skip

APART = [("service", "runner"), ("runner", "service"), ("api", "orchestration"), ("orchestration", "api"),
         ("orchestration", "cli"), ("api", "cli"), ("memex", "records"), ("stages", "stores"), ("stages", "gateway"),
         ("stores", "stages"), ("stores", "gateway"), ("importers", "stores")]  # fmt: skip

HOMES = {  # foreign package -> the only rooms that may import it
    "dagster": ("orchestration",),
    "fastapi": ("api",),
    "typer": ("cli",),
    "rich": ("cli",),
    "litellm": ("gateway",),
    "sqlmodel": ("stores",),
    "sqlalchemy": ("stores",),
    "alembic": ("stores",),
    "detect_secrets": ("redaction",),
    "dateparser": ("stages",),
    "jsonschema": ("memex",),
    "referencing": ("memex",),
}

LENGTH = 400


def modules() -> list[Path]:
    found = sorted(path for path in PACKAGE.rglob("*.py"))
    assert len(found) > 20, "the guard saw no house"
    return found


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield node.module or "", node.lineno


def own(name: str) -> str | None:
    parts = name.split(".")
    return parts[1] if parts[0] == "memory_pipelines" and len(parts) > 1 else None


def test_every_room_has_a_floor() -> None:
    rooms = {room(path) for path in modules()} - {"__init__"}

    assert rooms <= set(FLOORS), f"give these a floor: {sorted(rooms - set(FLOORS))}"


def test_imports_only_fall() -> None:
    rising = []
    for path in modules():
        here = room(path)
        for name, line in imports(path):
            there = own(name)
            if here == "__init__" or there is None or there == here:
                continue
            lazily_started = here == "cli" and there in {"orchestration", "api"}
            if FLOORS[there] > FLOORS[here] or (FLOORS[there] == FLOORS[here] == 7 and not lazily_started):
                rising.append(f"{path.relative_to(ROOT)}:{line}: {here} ({FLOORS[here]}) -> {there} ({FLOORS[there]})")

    assert rising == []


@pytest.mark.parametrize(("one", "other"), APART)
def test_rooms_that_stay_apart(one: str, other: str) -> None:
    arrows = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in modules()
        if room(path) == one
        for name, line in imports(path)
        if own(name) == other
    ]

    assert arrows == []


@pytest.mark.parametrize("foreign", sorted(HOMES))
def test_foreign_packages_stay_at_home(foreign: str) -> None:
    abroad, at_home = [], 0
    for path in modules():
        for name, line in imports(path):
            if name.split(".")[0] != foreign:
                continue
            if room(path) in HOMES[foreign]:
                at_home += 1
            else:
                abroad.append(f"{path.relative_to(ROOT)}:{line}")

    assert abroad == []
    assert at_home or foreign in {"fastapi"}, "the rule guards nothing"


def test_litellm_has_one_file() -> None:
    files = {path.name for path in modules() for name, _ in imports(path) if name.split(".")[0] == "litellm"}

    assert files == {"litellm_gateway.py"}


def test_dagster_is_private_in_one_file_only() -> None:
    files = {
        path.name
        for path in modules()
        for name, _ in imports(path)
        if name.startswith(("dagster._", "dagster_shared", "dagster_graphql"))
    }

    assert len(files) <= 1, files


def test_the_worker_needs_little() -> None:
    """What runs beside the model's code imports nothing but the standard library, pydantic, and its own neighbours."""
    seen: set[Path] = set()
    queue = [PACKAGE / "memex" / "kernels" / "worker.py"]
    while queue:
        path = queue.pop()
        seen.add(path)
        for name, line in imports(path):
            if not name.startswith("memory_pipelines"):
                assert name.split(".")[0] in {*sys.stdlib_module_names, "pydantic", "pydantic_core"}, f"{path}:{line}"
                continue
            assert name.startswith("memory_pipelines.memex.kernels."), f"{path}:{line}: {name}"
            target = PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py")
            queue += [] if target in seen else [target]

    assert len(seen) > 1


def test_no_circles() -> None:
    graph: dict[str, set[str]] = {}
    for path in modules():
        name = ".".join(("memory_pipelines", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
            ".__init__"
        )
        graph[name] = {
            target for target, _ in imports(path) if target.startswith("memory_pipelines") and target != name
        }
    done: set[str] = set()

    def walk(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail[trail.index(name) :], name))
        if name in done:
            return
        for target in graph.get(name, ()):
            walk(target, (*trail, name))
        done.add(name)

    for name in graph:
        if name != "memory_pipelines":
            walk(name, ())


def test_files_are_short() -> None:
    long = {str(path.relative_to(ROOT)): n for path in modules() if (n := len(path.read_text().splitlines())) > LENGTH}

    assert long == {}


def test_names_of_files_say_something() -> None:
    vague = [path for path in modules() if path.stem in {"utils", "helpers", "common", "misc"}]

    assert vague == []
