"""The port to language models: a request goes in, a response or one of our errors comes out."""

from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

OFFLINE = "offline"
"""The name of the model that is not an LLM: fixed rules, used when no model is configured."""

NOT_AN_LLM = "offline (rules, not an LLM)"
"""How the offline model is named wherever a person reads the model's name."""

Finish = Literal["stop", "length", "tool_calls", "refusal"]


class ToolCall(BaseModel):
    """One call of a native tool that a model asked for."""

    model_config = ConfigDict(frozen=True)

    id: str  # given by the provider; the answer must carry it
    name: str
    arguments: str  # JSON text as the model wrote it, maybe malformed


class Message(BaseModel):
    """One message of the exchange with the model."""

    model_config = ConfigDict(frozen=True)

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()  # only on assistant messages
    tool_call_id: str | None = None  # only on tool messages


class Usage(BaseModel):
    """What calls cost; adds up."""

    model_config = ConfigDict(frozen=True)

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0  # US dollars; 0 when the model has no known price
    seconds: float = 0.0  # waiting for the provider, wall clock

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost=self.cost + other.cost,
            seconds=self.seconds + other.seconds,
        )

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens


class Request(BaseModel):
    """What a model is asked."""

    model_config = ConfigDict(frozen=True)

    purpose: str  # distill, merge, maintain, agent, preflight: for logs, usage, and the offline model
    model: str  # LiteLLM's name for it, or "offline"
    messages: tuple[Message, ...]
    answer_schema: dict[str, Any] | None = None  # JSON schema that binds the answer, if any
    tools: tuple[dict[str, Any], ...] = ()  # OpenAI form
    max_tokens: int = Field(default=2048, gt=0)
    temperature: float = 0.0


class Response(BaseModel):
    """What the model answered."""

    model_config = ConfigDict(frozen=True)

    text: str
    finish: Finish = "stop"
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage(calls=1)
    model: str = ""  # as the provider named it


class ModelInfo(BaseModel):
    """What is known of a model before asking it."""

    model_config = ConfigDict(frozen=True)

    name: str
    context_tokens: int = 8192  # prompt and answer together
    profile: Literal["small", "strong"] = "small"  # small unless the model is known to write code well
    priced: bool = False  # whether a price is known
    tool_calls: bool = False  # whether it is known to call tools natively


class Gateway(Protocol):
    """Asks models. Shared by all actors of a run and safe for concurrent calls; whoever opened it closes it."""

    async def complete(self, request: Request) -> Response:
        """Ask once, waiting for limits and retrying transient errors within the gateway's own patience.

        Args:
            request: what to ask.

        Returns:
            The answer with its usage.

        Raises:
            GatewayError: mapped from the provider's error; `retryable` says whether a later attempt may pass.
        """
        ...

    def describe(self, model: str) -> ModelInfo:
        """Say what is known of a model, without a call."""
        ...

    async def close(self) -> None:
        """Release connections; further calls are errors."""
        ...
