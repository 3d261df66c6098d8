"""What a rollout of a strong model may take, by the size of its work: turns, tokens, and who reads a long history."""

from memory_pipelines.stages.base import Effort, StageSettings

STRETCH = 24
"""Windows that one rollout of distill reads at most: what is lost when it fails."""

ALONE = 6
"""Windows that a model reads by itself. Of a longer history it would forget the first when it reads the last."""

LOOK = 2000
"""Tokens of a first look at what merge and maintain are given: a small memory is seen whole without asking."""

_BASE = 5000  # tokens of a turn beside what is read: rules, task, earlier answers
_SLACK = 8  # turns beside those that read: a look round, an error to mend, a quote to check, the submit
_MOST_TURNS = 30
_SHARE = 3  # of the model's context that what is read may take: the rest is for rules, thoughts and answers


def reads_alone(windows: int, tokens: int, settings: StageSettings) -> bool:
    """Whether a model should read so much conversation in one context.

    Args:
        windows: how many.
        tokens: of all of them.
        settings: with the model's context.
    """
    return windows == 1 or (windows <= ALONE and tokens <= settings.context_tokens // _SHARE)


def effort_of(tokens: int, settings: StageSettings, *, parts: int = 1, look: bool = False) -> Effort:
    """Say what a rollout may take.

    Every turn sends again what was printed before, so the bound on tokens is turns times all that is read: a model
    that works by the rules stays far below it, one that runs in circles is stopped by it.

    Args:
        tokens: of what there is to read.
        settings: with the model's context and answers.
        parts: into how many portions it is cut, each a turn to read and one to write down.
        look: whether the first message shows what fits of it.

    Returns:
        The bounds.
    """
    turns = min(_MOST_TURNS, _SLACK + 2 * parts)
    shown = min(tokens, settings.context_tokens)
    return Effort(
        turns=turns,
        tokens=turns * (_BASE + shown),
        answer_tokens=max(settings.answer_tokens, min(4096, settings.context_tokens // 4)),
        look_tokens=min(LOOK, settings.context_tokens // 4) if look else 0,
    )
