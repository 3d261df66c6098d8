"""The rules of the house: how code is written."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "memory_pipelines"

BOUNDARIES = {  # where everything may be caught, and nowhere else
    "memex/kernels/worker.py",  # whatever a block raises is shown to the model
    "memex/kernels/zygote.py",  # a worker never runs on as the fork server it came from
    "memex/tools.py",  # whatever a tool raises is told to the model
    "orchestration/actors.py",  # one actor's failure is nobody else's
}


def trees() -> list[tuple[str, ast.Module]]:
    found = [(str(path.relative_to(PACKAGE)), ast.parse(path.read_text())) for path in sorted(PACKAGE.rglob("*.py"))]
    assert len(found) > 20, "the guard saw no house"
    return found


def test_only_boundaries_catch_everything() -> None:
    broad = set()
    for name, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ExceptHandler):
                continue
            kinds = ast.unparse(node.type) if node.type else "everything"
            reraised = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
            if kinds in {"everything", "Exception", "BaseException"} and not reraised:
                broad.add(name)

    assert broad <= BOUNDARIES, f"name the errors, or make it a boundary: {sorted(broad - BOUNDARIES)}"


def test_public_things_carry_docstrings() -> None:
    bare = []
    for name, tree in trees():
        if not ast.get_docstring(tree) and tree.body:
            bare.append(name)
        for node in tree.body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
                continue
            if not ast.get_docstring(node):
                bare.append(f"{name}: {node.name}")
            if isinstance(node, ast.ClassDef) and not any("Protocol" in ast.unparse(base) for base in node.bases):
                bare += [
                    f"{name}: {node.name}.{inner.name}"
                    for inner in node.body
                    if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
                    and not inner.name.startswith("_")
                    and not ast.get_docstring(inner)
                ]

    assert bare == []


def test_nothing_unfinished_is_left() -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "NotImplemented" + "Error")
    left = [
        f"{path.relative_to(ROOT)}: {mark}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for mark in marks
        if mark in path.read_text()
    ]

    assert left == []


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("memory_pipelines", ["dagster", "sqlmodel", "sqlalchemy", "litellm", "fastapi", "typer", "pydantic"]),
        ("memory_pipelines.memex", ["dagster", "sqlmodel", "litellm", "memory_pipelines.records"]),
        ("memory_pipelines.wiring", ["dagster", "litellm", "typer", "dateparser"]),
        ("memory_pipelines.cli.main", ["dagster", "litellm", "sqlmodel"]),
    ],
)
def test_importing_is_cheap(module: str, absent: list[str]) -> None:
    code = f"import sys, {module}; print([name for name in {absent!r} if name in sys.modules])"

    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert seen.stdout.strip() == "[]"


def test_lock_names_no_index() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()

    assert len(lines) > 50
    assert [line for line in lines if "://" in line or line.startswith("-")] == []
