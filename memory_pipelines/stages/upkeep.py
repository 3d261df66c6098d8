"""What maintain does without a model: folds lines that say the same, joins entries of one topic, splits long ones."""

from collections.abc import Iterable, Sequence

from memory_pipelines.records import Entry
from memory_pipelines.stages.files import File, Key, Plan, carry_out, sound
from memory_pipelines.stages.layout import Layout, numbered, path_topics, slug, topic_of
from memory_pipelines.stages.lines import Line, normal
from memory_pipelines.stages.similarity import repeats, sense

FILL = 0.8
"""Share of the longest entry up to which parts are filled, so that the next line still fits."""

JOIN = 0.5
"""Share of the longest entry up to which entries are joined: well below `FILL`, or parts would be split and joined."""

_ROUNDS = 4  # a join may make an entry long, a split may bring lines together


def files_of(entries: Sequence[Entry], layout: Layout) -> list[File]:
    """An actor's entries as files.

    Args:
        entries: of the actor.
        layout: of the actor; entries at paths that the instructions name are kept first, then those that agents made.

    Returns:
        One file for each entry.
    """
    told = {path for path, _, _ in layout.instructed}
    ordered = sorted(
        entries, key=lambda entry: (entry.path not in told, entry.source_type != "AGENT", entry.create_time, entry.path)
    )
    return [File(path=entry.path, content=entry.content, rank=(number,)) for number, entry in enumerate(ordered)]


def fold_exact(files: Sequence[File]) -> Plan:
    """Drop lines that stand word for word in another place.

    Args:
        files: the files, those to be kept first.

    Returns:
        The drops.
    """
    plan = Plan()
    seen: dict[str, Key] = {}
    for file in sorted(files, key=lambda file: file.rank):
        for line in file.lines:
            key = (file.path, line.number)
            kept = seen.setdefault(normal(line.text), key)
            if kept != key and line.kind == "fact":
                plan.drops[key] = kept
    return plan


def suggest(files: Sequence[File], *, layout: Layout, longest: int) -> Plan:
    """What the rules would do in one go.

    Args:
        files: the files.
        layout: of the actor.
        longest: characters of an entry, at most.

    Returns:
        The steps; empty when there is nothing to do.
    """
    plan = fold_exact(files)
    plan = sound(plan.plus(_fold_near(files, plan)), files)
    moved = _join(files, plan, layout=layout, longest=longest)
    plan = plan.plus(moved)
    touched = plan.paths()
    for file in files:
        if file.path not in touched and len(file.content) > longest:
            split = _split(file, files, longest=longest)
            plan = plan.plus(split)
    return plan


def settle(files: Sequence[File], *, layout: Layout, longest: int) -> tuple[list[File], list[Plan]]:
    """Follow the rules until there is nothing to do.

    Args:
        files: the files.
        layout: of the actor.
        longest: characters of an entry, at most.

    Returns:
        The files as they become, and the steps taken in each round.
    """
    done: list[Plan] = []
    now = list(files)
    for _ in range(_ROUNDS):
        plan = suggest(now, layout=layout, longest=longest)
        if not plan:
            break
        now = carry_out(plan, now)
        done.append(plan)
    return now, done


def shorten(files: Sequence[File], *, longest: int) -> Plan:
    """Split what is too long, and nothing else.

    Args:
        files: the files.
        longest: characters of an entry, at most.

    Returns:
        The moves.
    """
    plan = Plan()
    for file in files:
        if len(file.content) > longest:
            plan = plan.plus(_split(file, files, longest=longest))
    return plan


def _fold_near(files: Sequence[File], exact: Plan) -> Plan:
    """Drop lines that another line says all of."""
    plan = Plan()
    lines: list[tuple[Key, Line]] = [
        ((file.path, line.number), line)
        for file in sorted(files, key=lambda file: file.rank)
        for line in file.lines
        if (file.path, line.number) not in exact.drops
    ]
    # Only lines with the same numbers and turns can say each other; of these, only such that share a word.
    holders: dict[tuple[object, str], list[int]] = {}
    for at, (_, line) in enumerate(lines):
        own = sense(line.text)
        for word in own.bag:
            holders.setdefault((own.turns, word), []).append(at)
    for at in range(len(lines) - 1, -1, -1):  # of two that say each other the later one goes
        key, line = lines[at]
        own = sense(line.text)
        if line.kind != "fact" or not own.bag:
            continue
        for other in min((holders[own.turns, word] for word in own.bag), key=len):
            kept = plan.kept(lines[other][0])
            if kept != key and kept not in exact.drops and repeats(line.text, lines[other][1].text):
                plan.drops[key] = lines[other][0]
                break
    return plan


def _join(files: Sequence[File], plan: Plan, *, layout: Layout, longest: int) -> Plan:
    """Move the lines of entries of one topic together, where they fit."""
    told = {path for path, _, _ in layout.instructed}
    moves = Plan()
    groups: dict[frozenset[str], list[File]] = {}
    for file in sorted(files, key=lambda file: file.rank):
        topics = path_topics(file.path)
        if topics and file.lines:
            groups.setdefault(topics, []).append(file)
    for group in groups.values():
        home, size = group[0], len(group[0].content)
        for file in group[1:]:
            held = any(line.kind == "held" for line in file.lines)
            if held or file.path in told or size + len(file.content) > JOIN * longest:
                continue
            size += len(file.content)
            for line in file.lines:
                key = (file.path, line.number)
                if key not in plan.drops:
                    moves.moves[key] = home.path
    return moves


def _split(file: File, files: Sequence[File], *, longest: int) -> Plan:
    room = int(FILL * longest)
    sizes = {one.path: len(one.content) for one in files}
    plan = Plan()
    left = len(file.content)
    for name, lines in _groups(file):
        if left <= room:
            return plan
        for line in lines:
            path = _with_room(name, len(line.raw) + len(line.heading) + 8, sizes, room, first=1)
            plan.moves[file.path, line.number] = path
            left -= len(line.raw) + 1
    rest = [line for line in file.lines if line.kind == "fact" and (file.path, line.number) not in plan.moves]
    for line in reversed(rest[1:]):
        if left <= room:
            break
        plan.moves[file.path, line.number] = ""
        left -= len(line.raw) + 1
    for key, path in sorted(plan.moves.items()):
        if not path:
            line = next(one for one in file.lines if one.number == key[1])
            plan.moves[key] = _with_room(
                file.path, len(line.raw) + len(line.heading) + 8, sizes, room, first=_part(file.path) + 1
            )
    return plan


def _groups(file: File) -> Iterable[tuple[str, list[Line]]]:
    """Parts that can leave an entry, with the path they go to, the last first: its sections, else its topics."""
    folder, _, name = file.path.rpartition("/")
    base = name.removesuffix(".md")
    facts = [line for line in file.lines if line.kind == "fact"]
    sections: dict[str, list[Line]] = {}
    for line in facts:
        sections.setdefault(line.heading, []).append(line)
    if len(sections) > 1:
        held = {line.heading for line in file.lines if line.kind == "held"}
        for heading, lines in reversed(list(sections.items())[1:]):
            part = slug(heading)
            if part and heading not in held:
                yield f"{folder}/{base}-{part}.md", lines
        return
    own = path_topics(file.path)
    topics: dict[str, list[Line]] = {}
    for line in facts:
        topic = topic_of(line.text)
        if topic and topic not in own:
            topics.setdefault(topic, []).append(line)
    for topic, lines in sorted(topics.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        if len(lines) > 1:
            yield f"{folder}/{topic}.md", lines


def _with_room(path: str, size: int, sizes: dict[str, int], room: int, *, first: int) -> str:
    number = first
    wanted = path if first == 1 else numbered(path, first)
    while sizes.get(wanted, 0) and sizes[wanted] + size > room:
        number += 1
        wanted = numbered(path, number)
    sizes[wanted] = sizes.get(wanted, 0) + size
    return wanted


def _part(path: str) -> int:
    digits = path.removesuffix(".md").rpartition("-")[2]
    return int(digits) if digits.isdigit() and len(digits) <= 3 else 1
