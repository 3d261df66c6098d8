"""What merge decides without a model. In doubt a fact is added: a line too many can be folded, a lost one cannot."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from memory_pipelines.records import Fact
from memory_pipelines.stages.board import Board, Spot
from memory_pipelines.stages.similarity import (
    ALIKE,
    Relation,
    Sense,
    covers,
    differs,
    likeness,
    relate,
    sense,
)

_SURE = 3  # content words from which equal words in equal order need no second look

_CLOSE = 0.5  # likeness from which one fact may replace several lines


@dataclass(frozen=True, kw_only=True)
class Match:
    """A line that a fact resembles."""

    spot: Spot
    relation: Relation
    likeness: float


def candidates(spots: Iterable[Spot], fact: Fact | str, *, least: float = ALIKE) -> list[Match]:
    """The lines that a fact may be about, the closest first.

    Args:
        spots: the lines to look at.
        fact: a fact, or any text.
        least: likeness from which a line that stands in no other relation counts.

    Returns:
        The matches.
    """
    text = fact if isinstance(fact, str) else fact.text
    own = sense(text)
    found: list[Match] = []
    for spot in spots:
        line = spot.sense
        # Most lines share no word: nothing more is asked of them.
        if own.all.isdisjoint(line.all) and own.rejected.isdisjoint(line.all) and line.rejected.isdisjoint(own.all):
            continue
        relation = _relation(fact, own, line)
        close = likeness(own, line)
        if relation not in ("near", "apart") or close >= least or relate(line, own) == "corrected":
            found.append(Match(spot=spot, relation=relation, likeness=close))
    order: Sequence[Relation] = ("equal", "covered", "corrected", "contrary", "near", "apart")
    return sorted(found, key=lambda match: (-match.likeness, order.index(match.relation)))


def is_certain(match: Match) -> bool:
    """Whether the fact and the line use the same words, so that nobody need be asked.

    Args:
        match: a fact's match.

    Returns:
        True when they are equal and long enough to be so not by chance.
    """
    return match.relation == "equal" and len(match.spot.sense.words) >= _SURE


def is_stale(fact: Fact, spot: Spot) -> bool:
    """Whether a fact was said before what the line says.

    Args:
        fact: the fact.
        spot: the line.

    Returns:
        True when the fact must not replace the line.
    """
    return fact.observed_at < spot.seen


def forbidden(fact: Fact, spot: Spot) -> bool:
    """Whether the host refuses to call a fact and a line the same, whoever says so.

    Args:
        fact: the fact.
        spot: the line.

    Returns:
        True when they differ in a number, a day, a name or a negation, or the fact takes back what the line says.
    """
    own, line = sense(fact.text), spot.sense
    return differs(own, line) or _relation(fact, own, line) in ("corrected", "contrary")


def extends(fact: Fact, spot: Spot) -> bool:
    """Whether a fact says all that a line says, and more that would be lost if they were called the same.

    Args:
        fact: the fact.
        spot: the line.

    Returns:
        True when at least two words come on top; a narrower preference is no more than the wider one.
    """
    own, line = sense(fact.text), spot.sense
    return fact.kind != "preference" and bool(line.bag) and line.bag < own.bag and len(own.bag - line.bag) > 1


def replaceable(fact: Fact, spots: Sequence[Spot]) -> list[Spot]:
    """Of several lines that a fact is said to replace, those that it is close enough to.

    Args:
        fact: the fact.
        spots: the lines.

    Returns:
        Lines that share about half of their words with it, that the rules see corrected, or that say what one of
        these says.
    """
    own = sense(fact.text)
    near = [
        spot
        for spot in spots
        if likeness(own, spot.sense) >= _CLOSE or _relation(fact, own, spot.sense) not in ("near", "apart")
    ]
    return [spot for spot in spots if spot in near or any(_is_twin(spot.sense, one.sense) for one in near)]


def decide(board: Board, fact: Fact) -> tuple[Literal["add", "same", "replace", "stale"], list[Spot]]:
    """Decide what becomes of a fact.

    Args:
        board: memory as it stands; not changed.
        fact: the next fact in time.

    Returns:
        The action and the lines it is about: one for `same`, those to go for `replace`, those that are newer for
        `stale`.
    """
    exact = board.exact(fact.text)
    if exact:
        return "same", [exact]
    own = sense(fact.text)
    living = board.living()
    found = candidates(living, fact)
    same = [match.spot for match in found if match.relation in ("equal", "covered")]
    wrong = [match.spot for match in found if _makes_wrong(fact, own, match) and not match.spot.fixed]
    newer = [spot for spot in wrong if is_stale(fact, spot)]
    newer += [match.spot for match in found if is_stale(fact, match.spot) and _is_undone(own, match.spot.sense)]
    if newer:
        return "stale", newer
    if wrong:
        # What says the same as a line that goes must go too, and so must other lines that say the new thing.
        rest = [spot for spot in living if spot not in wrong and not spot.fixed and not is_stale(fact, spot)]
        twins = [spot for spot in rest if any(_is_twin(spot.sense, one.sense) for one in wrong)]
        said = [spot for spot in same if not spot.fixed and spot not in twins]
        return "replace", [*wrong, *(spot for spot in twins if spot not in same), *said]
    return ("same", same[:1]) if same else ("add", [])


def _relation(fact: Fact | str, own: Sense, line: Sense) -> Relation:
    if isinstance(fact, str):
        return relate(own, line)
    wish = fact.kind in ("preference", "correction")
    return relate(own, line, preference=wish, correction=fact.kind == "correction")


def _makes_wrong(fact: Fact, own: Sense, match: Match) -> bool:
    if match.relation in ("corrected", "contrary"):
        return True
    line = match.spot.sense
    moved = bool(own.bag) and own.bag == line.bag and own.numbers != line.numbers and own.negative == line.negative
    # "The report at 10" after "the report at 9"; of events with other numbers both stay true.
    return moved and fact.kind != "fact"


def _is_undone(own: Sense, line: Sense) -> bool:
    return relate(line, own) in ("corrected", "contrary")


def _is_twin(other: Sense, gone: Sense) -> bool:
    return not differs(other, gone, names=False) and covers(other, gone)
