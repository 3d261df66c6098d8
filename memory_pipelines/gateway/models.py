"""What is known of models before asking them: data, and how names are looked up."""

import re
from collections.abc import Mapping
from typing import cast

from memory_pipelines.gateway.base import OFFLINE, ModelInfo

UNKNOWN_CONTEXT = 8192

_STRONG = re.compile(  # families that write working code and follow long instructions
    r"(?:^|[/.:@-])(?:"
    r"claude-(?:(?:3-[57]-)?sonnet|opus|3-opus|sonnet|haiku-4|fable|mythos)|"
    r"gpt-4\.[1-9]|gpt-4o(?!-mini)|gpt-[5-9]|o[1345](?=$|[-@:])|codex|"
    r"gemini-(?:\d\.\d|\d)-(?:pro|flash(?!-lite))|"
    r"deepseek-(?:chat|coder|reasoner|v3|r1(?!-distill))|"
    r"qwen3-(?:coder-480b|max|235b)|qwen-max|kimi-k2|glm-[4-9]\.[5-9]|glm-[5-9]|grok-[3-9]|mistral-large|"
    r"llama-4-maverick|llama-?3\.1-405b"
    r")",
    re.IGNORECASE,
)
_WEAK = re.compile(r"nano|distill|-mini-\d+b", re.IGNORECASE)


def is_strong(model: str) -> bool:
    """Whether the model belongs to a family that is known to write code well."""
    return bool(_STRONG.search(model)) and not _WEAK.search(model)


def describe_model(
    model: str, prices: Mapping[str, Mapping[str, object]], *, context_tokens: int | None = None
) -> ModelInfo:
    """Say what a table of models knows of one.

    Args:
        model: LiteLLM's name for it.
        prices: LiteLLM's table: name to limits and prices.
        context_tokens: wins over the table.

    Returns:
        With 8192 tokens of context and the profile `small` when the model is unknown.
    """
    if model == OFFLINE:
        return ModelInfo(name=OFFLINE)
    entry = _entry(model, prices)
    # The table's limits overlap for some providers and add up for others; input alone never promises too much.
    known = entry.get("max_input_tokens") or entry.get("max_tokens")
    context = context_tokens or (known if isinstance(known, int) else UNKNOWN_CONTEXT)
    price = entry.get("input_cost_per_token")
    priced = isinstance(price, int | float) and price > 0
    return ModelInfo(
        name=model,
        context_tokens=context,
        profile="strong" if is_strong(model) else "small",
        priced=priced,
        tool_calls=entry.get("supports_function_calling") is True,
    )


def _entry(model: str, prices: Mapping[str, Mapping[str, object]]) -> Mapping[str, object]:
    if model in prices:
        return prices[model]
    provider, _, rest = model.partition("/")
    entry = prices.get(rest)
    # "ollama/gpt-4" is not OpenAI's gpt-4, though the table has a row of that name.
    if entry and str(entry.get("litellm_provider", "")).startswith(provider):
        return entry
    return cast("Mapping[str, object]", {})
