"""Figures of `kernel.py` in words: medians, ratios to our pool, and what was aimed at."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

OURS = "pool"
"""The contestant that all others are compared with."""

TITLES = {
    "start": "start: from asking until a block can run",
    "start and first block": "start and a first block `x = 1`",
    "block": "round trip of a block `x = 1`",
    "tool call": "tool call, one of many in a loop in one block",
    "block with a tool call": "round trip of a block with one tool call",
    "loop": "block that counts to 100,000",
    "rollout": "short rollout: fresh kernel, 3 blocks, 1 tool call, 8 at once",
    "CPU of a rollout": "CPU time of a short rollout, host and kernels together",
    "memory": "memory of an idle kernel that is its own",
    "memory with its share": "memory of an idle kernel with its share of what is common (PSS)",
}

GOALS = {  # on two idle cores: contestant and figure -> most of it, at the median
    ("pool", "start"): 1e-3,
    ("fork", "start"): 10e-3,
    ("fork with pandas", "start"): 20e-3,
    ("pool", "block"): 1e-3,
    ("pool", "tool call"): 0.5e-3,
    ("pool", "rollout"): 10e-3,
    ("pool", "memory"): 10e6,
}

Values = Mapping[str, Sequence[float]]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that is not below so large a share of all.

    Args:
        values: at least one.
        share: between 0 and 1.
    """
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def summary(figures: Mapping[str, Values]) -> dict[str, dict[str, dict[str, float]]]:
    """Sum up what was measured.

    Args:
        figures: contestant -> figure -> values.

    Returns:
        Figure -> contestant -> `n`, `p50`, `p95`, and `ratio`: its median as a multiple of our pool's.
    """
    out: dict[str, dict[str, dict[str, float]]] = {}
    for title in TITLES:
        rows = {name: values[title] for name, values in figures.items() if values.get(title)}
        base = percentile(rows[OURS], 0.5) if OURS in rows else 0.0
        out[title] = {
            name: {
                "n": len(values),
                "p50": percentile(values, 0.5),
                "p95": percentile(values, 0.95),
                **({"ratio": percentile(values, 0.5) / base} if base else {}),
            }
            for name, values in rows.items()
        }
    return out


def goals(summed: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[dict[str, Any]]:
    """Compare medians with what was aimed at on two idle cores.

    Args:
        summed: from `summary`.

    Returns:
        `contestant`, `figure`, `goal`, `p50` and `met`, for each goal with a figure.
    """
    return [
        {"contestant": name, "figure": title, "goal": goal, "p50": row["p50"], "met": row["p50"] < goal}
        for (name, title), goal in GOALS.items()
        if (row := summed.get(title, {}).get(name))
    ]


def shown(value: float, title: str) -> str:
    """Write a value with its unit.

    Args:
        value: seconds or bytes.
        title: of which figure.
    """
    if title.startswith("memory"):
        return f"{value / 1e6:.1f} MB"
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.2f} ms"


def text(result: Mapping[str, Any]) -> str:
    """Write a result for people.

    Args:
        result: of `kernel.measured`.
    """
    about = result["machine"]
    lines = [
        f"{about['cores']} cores, {about['system']}, Python {about['python']}",
        f"load average {about['load before'][0]:.2f} before and {about['load after'][0]:.2f} after",
        ", ".join(f"{name} {number}" for name, number in result["versions"].items()),
        *(f"absent: {name}: {why}" for name, why in result["absent"].items()),
    ]
    for title, rows in result["figures"].items():
        if not rows:
            continue
        lines += ["", f"{TITLES[title]:64}{'p50':>12}{'p95':>12}{'ratio':>9}"]
        for name in result["contestants"]:
            note = result["notes"].get(name, {}).get(title, "")
            row = rows.get(name)
            if row is None:
                lines.append(f"  {name:62}{'-':>12}{'-':>12}{'-':>9}  {note}".rstrip())
                continue
            ratio = f"{row['ratio']:.3g}" if "ratio" in row else "-"
            rate = f"{1 / row['p50']:,.0f} a second" if title == "rollout" else ""
            told = "; ".join(filter(None, (rate, note)))
            p50, p95 = shown(row["p50"], title), shown(row["p95"], title)
            lines.append(f"  {name:62}{p50:>12}{p95:>12}{ratio:>9}  {told}".rstrip())
    lines += ["", "goals, meant for two idle cores"]
    for goal in result["goals"]:
        said = "met" if goal["met"] else "missed"
        wanted, p50 = shown(goal["goal"], goal["figure"]), shown(goal["p50"], goal["figure"])
        lines.append(f"  {goal['contestant']}, {goal['figure']}: {p50}, aimed at less than {wanted}: {said}")
    return "\n".join(lines)
