"""Turns LoCoMo conversations into the project's own JSONL: each speaker is an actor, the other one the other party.

    python bench/locomo.py --data PATH/26.json PATH/30.json --out locomo.jsonl

LoCoMo (ACL 2024) is CC BY-NC 4.0: bring your own copy; none of it is in this repository.
"""

import argparse
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

TURN = timedelta(seconds=20)
"""Between two turns: the data set dates whole sessions only."""


def moment(text: str) -> datetime:
    """Read a session's date, such as `1:56 pm on 8 May, 2023`."""
    return datetime.strptime(text.replace(",", ""), "%I:%M %p on %d %B %Y").replace(tzinfo=UTC)


def said(turn: dict[str, Any]) -> str:
    """Return what a turn says, with the caption of a shared picture."""
    caption = turn.get("blip_caption")
    return f"{turn['text']} [shares {caption}]" if caption else turn["text"]


def sessions(path: Path, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield each session of a conversation twice, once as each speaker's.

    Args:
        path: a conversation of the data set.
        limit: how many sessions, the first ones; None for all.
    """
    data = json.loads(path.read_text(encoding="utf-8"))
    numbers = sorted(int(key.removeprefix("session_")) for key in data if re.fullmatch(r"session_\d+", key))
    for number in numbers[:limit]:
        begun = moment(data[f"session_{number}_date_time"])
        for actor in (data["speaker_a"], data["speaker_b"]):
            yield {
                "actor_id": f"{path.stem}/{actor}",
                "session_id": f"{path.stem}-{actor.lower()}-{number}",
                "items": [
                    {
                        "role": "user" if turn["speaker"] == actor else "assistant",
                        "name": turn["speaker"],
                        "content": said(turn),
                        "at": (begun + position * TURN).isoformat().replace("+00:00", "Z"),
                    }
                    for position, turn in enumerate(data[f"session_{number}"])
                ],
            }


def main() -> None:
    """Write one line a session."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", nargs="+", type=Path, required=True, help="conversations of the data set")
    parser.add_argument("--out", type=Path, required=True, help="JSONL file to write")
    parser.add_argument("--sessions", type=int, help="only the first so many sessions")
    given = parser.parse_args()
    count = 0
    with given.out.open("w", encoding="utf-8") as out:
        for path in given.data:
            for session in sessions(path, given.sessions):
                out.write(json.dumps(session, ensure_ascii=False) + "\n")
                count += 1
    print(f"{given.out}: {count} sessions")


if __name__ == "__main__":
    main()
