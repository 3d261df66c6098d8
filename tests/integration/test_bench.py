"""The benchmark of the kernels runs; how fast they are is no matter of tests."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


def test_the_benchmark_of_kernels_runs_without_peers(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    names = ["pool", "inprocess"]

    seen = subprocess.run(
        [sys.executable, str(BENCH / "kernel.py"), "--quick", "--only", *names, "--json", str(out)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    result = json.loads(out.read_text())
    assert result["absent"] == {}
    assert {title for title, rows in result["figures"].items() if set(rows) == set(names)} >= {
        "start", "start and first block", "block", "tool call", "block with a tool call", "loop", "rollout",
    }  # fmt: skip
    assert result["figures"]["block"]["pool"]["n"] == 2
    assert result["figures"]["block"]["pool"]["ratio"] == 1
    assert all(row["p50"] > 0 for rows in result["figures"].values() for name, row in rows.items() if name == "pool")
    assert "round trip of a block `x = 1`" in seen.stdout


def test_a_peer_that_is_not_installed_is_named_and_the_others_are_measured(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'no such package' >&2\nexit 3\n")
    python.chmod(0o755)

    asked = ["--peers", str(python), "--only", "inprocess", "monty", "--json", str(out)]
    subprocess.run(
        [sys.executable, str(BENCH / "kernel.py"), "--quick", *asked],
        capture_output=True,
        check=True,
        timeout=60,
    )

    result = json.loads(out.read_text())
    assert result["absent"] == {"monty": "no such package"}
    assert list(result["figures"]["block"]) == ["inprocess"]


def test_medians_ratios_and_goals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    from kernel_report import goals, percentile, summary

    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile([4, 3, 2, 1], 0.5) == 2  # two of four are not above it
    assert percentile([float(n) for n in range(1, 21)], 0.95) == 19
    assert percentile([7], 0.95) == 7

    summed = summary({"pool": {"start": [0.002, 0.001, 0.003]}, "jupyter": {"start": [0.5], "block": []}})

    assert summed["start"] == {
        "pool": {"n": 3, "p50": 0.002, "p95": 0.003, "ratio": 1},
        "jupyter": {"n": 1, "p50": 0.5, "p95": 0.5, "ratio": 250},
    }
    assert summed["block"] == {}
    assert goals(summed) == [{"contestant": "pool", "figure": "start", "goal": 1e-3, "p50": 0.002, "met": False}]
