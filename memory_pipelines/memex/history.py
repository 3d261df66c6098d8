"""The exchange of a rollout with its model, and how room is made in it near the model's context limit."""

from collections.abc import Sequence

from memory_pipelines.gateway.base import Message, ToolCall, Usage
from memory_pipelines.wording import tokens_of

_NEAR = 0.9
"""The share of the model's context from which on old observations are cut: estimates of tokens may be too low."""


class History:
    """Messages that only grow, but for old observations, which are cut all at once when the context is nearly full.

    System prompt and task never change, so that a provider's cache serves every turn; a cut costs the cache of what
    follows it once, where cutting a little at every turn would cost it each time.
    """

    def __init__(self, system: str, task: str, *, mark: str, context_tokens: int | None, answer_tokens: int) -> None:
        """Begin with what never changes.

        Args:
            system: the system prompt.
            task: the first message of the user.
            mark: what a cut observation is replaced by.
            context_tokens: what the model takes, answer included; None never cuts.
            answer_tokens: room that the answer and the schemas of tools need.
        """
        self.messages: list[Message] = [Message(role="system", content=system), Message(role="user", content=task)]
        self._mark = mark
        self._room = None if context_tokens is None else _NEAR * context_tokens - answer_tokens
        self._observations: list[list[int]] = []  # places in `messages`, by turn
        self._measured = 0  # tokens of the messages up to `_until`, as the provider counted
        self._until = 0

    def tell(self, said: str, told: str) -> None:
        """Add an answer that was not an action, and what the model is told of it.

        Args:
            said: the answer as it stays in the conversation.
            told: feedback.
        """
        self.messages += [Message(role="assistant", content=said), Message(role="user", content=told)]

    def observe(self, said: str, told: Sequence[str], calls: Sequence[ToolCall] = ()) -> None:
        """Add an answer and what came of it.

        Args:
            said: the answer as it stays in the conversation.
            told: what the model is shown: one text for each of the calls, or one in all.
            calls: native calls that the answer was made of.
        """
        self.messages.append(Message(role="assistant", content=said, tool_calls=tuple(calls)))
        start = len(self.messages)
        if calls:
            self.messages += [
                Message(role="tool", content=text, tool_call_id=call.id) for call, text in zip(calls, told, strict=True)
            ]
        else:
            self.messages += [Message(role="user", content=text) for text in told]
        self._observations.append(list(range(start, len(self.messages))))

    def measured(self, usage: Usage) -> None:
        """Take what the provider counted for all messages until now; estimates go on from there."""
        self._measured, self._until = usage.prompt_tokens, len(self.messages)

    def fit(self) -> None:
        """Cut old observations if the next request would come near the model's context limit."""
        if self._room is not None and self._tokens() > self._room:
            self.cut()

    def cut(self) -> bool:
        """Replace the observations of all turns but the last by the mark.

        Returns:
            Whether that changed anything.
        """
        old = [place for turn in self._observations[:-1] for place in turn]
        longer = [place for place in old if len(self.messages[place].content) > len(self._mark)]
        for place in longer:
            self.messages[place] = self.messages[place].model_copy(update={"content": self._mark})
        if longer:
            self._measured = self._until = 0  # counted before the cut
        return bool(longer)

    def _tokens(self) -> int:
        estimate = sum(map(_cost, self.messages))
        return max(estimate, self._measured + sum(map(_cost, self.messages[self._until :])))


def _cost(message: Message) -> int:
    return tokens_of(message.content) + sum(tokens_of(call.name + call.arguments) for call in message.tool_calls)
