"""Translates what LiteLLM and the clients under it raise into our errors, without importing them."""

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import cast

from memory_pipelines.errors import (
    ContextTooLongError,
    GatewayError,
    GatewayFinalError,
    GatewayTransientError,
    RateLimitedError,
)
from memory_pipelines.gateway.base import Request
from memory_pipelines.redaction import redact

_TRANSIENT, _LIMITED, _FINAL, _TOO_LONG, _REFUSED = "transient", "limited", "final", "too long", "refused"

# By class name, because one class has several homes (litellm, openai, httpx). The most derived name wins.
KINDS: Mapping[str, str] = {
    "RateLimitError": _LIMITED,
    "Timeout": _TRANSIENT,
    "APITimeoutError": _TRANSIENT,
    "TimeoutError": _TRANSIENT,
    "TimeoutException": _TRANSIENT,
    "APIConnectionError": _TRANSIENT,
    "ConnectionError": _TRANSIENT,
    "TransportError": _TRANSIENT,
    "ServiceUnavailableError": _TRANSIENT,
    "BadGatewayError": _TRANSIENT,
    "InternalServerError": _TRANSIENT,
    "MidStreamFallbackError": _TRANSIENT,
    "APIResponseValidationError": _TRANSIENT,
    "ContextWindowExceededError": _TOO_LONG,
    "ContentPolicyViolationError": _REFUSED,
    "GuardrailRaisedException": _REFUSED,
    "BlockedPiiEntityError": _REFUSED,
    "ModifyResponseException": _REFUSED,
    "RejectedRequestError": _REFUSED,
    "AuthenticationError": _FINAL,
    "PermissionDeniedError": _FINAL,
    "NotFoundError": _FINAL,
    "BadRequestError": _FINAL,
    "UnprocessableEntityError": _FINAL,
    "PaymentRequiredError": _FINAL,
    "ModelNotMappedError": _FINAL,
    "BudgetExceededError": _FINAL,
    "SensitiveDataRouteException": _FINAL,
}
_BY_STATUS = ("APIError", "APIStatusError", "OpenAIError", "HTTPStatusError")

_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing|credit balance|out of credits", re.I)
_LENGTH = re.compile(
    r"context[_ ]length|context window|maximum context|too many (?:input )?tokens|prompt is too long|"
    r"exceeds? the (?:model'?s )?(?:maximum|context)|input is too long",
    re.I,
)
_NO_KEY = re.compile(  # LiteLLM reports a key that was never set as a failure of the server
    r"missing credentials|(?:missing|no) [\w ]{0,20}api.?key|api.?key[^.]{0,80}(?:must be set|not set|is required)",
    re.I,
)
_SAFETY = re.compile(
    r"content_policy_violation|content_filter|content management policy|(?:rejected|flagged)[^.]{0,60}safety system",
    re.I,
)
_NO_PROVIDER = "LLM Provider NOT provided"
_ADVICE = {
    "AuthenticationError": "Set the provider's key, such as OPENAI_API_KEY or ANTHROPIC_API_KEY.",
    "PermissionDeniedError": "The key may not use this model; ask for access or choose another model.",
    "NotFoundError": "Check the model's name, written as LiteLLM does (openai/gpt-5), and the provider's address.",
    "PaymentRequiredError": "The account has no credit; top it up or use another key.",
}
_SAYS = 300  # characters of the provider's own words


def is_refusal(error: BaseException) -> bool:
    """Whether a safety system refused the content, which is an answer and not a failure."""
    kind = _kind(error)
    return kind == _REFUSED or (kind == _FINAL and bool(_SAFETY.search(f"{error} {getattr(error, 'body', '')}")))


def may_be_about_the_schema(error: BaseException) -> bool:
    """Whether the provider found the request malformed, so that it may pass with another form of answer schema."""
    names = {kind.__name__ for kind in type(error).__mro__}
    text = str(error)
    if "InternalServerError" in names and "response_format" in text:
        return True  # servers that do not know the form fail over it, instead of saying so
    if not names & {"BadRequestError", "UnprocessableEntityError"} or _kind(error) != _FINAL or is_refusal(error):
        return False
    return "PaymentRequiredError" not in names and not _LENGTH.search(text) and _NO_PROVIDER not in text


def translate(error: BaseException, request: Request, *, now: datetime, key: str | None = None) -> GatewayError | None:
    """Turn a provider's error into ours.

    Args:
        error: what was raised.
        request: what was asked; none of its content gets into the message.
        now: the time, aware, to read a Retry-After date.
        key: the key that was used, if it was given in code.

    Returns:
        Our error, or None when the error is not a provider's.
    """
    kind = _kind(error)
    if kind is None:
        return None
    name = type(error).__name__
    facts: dict[str, object] = {"model": request.model, "provider_error": name, "retry_after": None}
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        facts["http_status"] = status
    says = _own_words(error, request, key)
    text = str(error)
    if kind in (_FINAL, _LIMITED) and _LENGTH.search(text) and status in (400, 413, 422):
        kind = _TOO_LONG
    if kind == _TRANSIENT and _NO_KEY.search(text):
        message = f"No key for {request.model!r} is set{says}. {_ADVICE['AuthenticationError']}"
        return GatewayFinalError(message, **facts)
    if kind == _LIMITED and _QUOTA.search(text + str(getattr(error, "body", ""))):
        message = f"The quota of the provider of {request.model!r} is used up{says}. Raise it or use another key."
        return GatewayFinalError(message, **facts)
    if kind == _LIMITED:
        facts["retry_after"] = retry_after(_headers(error), now=now)
        message = f"The provider of {request.model!r} limits the rate of calls{says}. Lower the limits, or wait."
        return RateLimitedError(message, **facts)
    if kind == _TOO_LONG:
        message = f"The request is longer than the context of {request.model!r}{says}. Send less, or set the context."
        return ContextTooLongError(message, **facts)
    if kind == _TRANSIENT:
        facts["retry_after"] = retry_after(_headers(error), now=now)
        message = f"The provider of {request.model!r} did not answer properly ({name}){says}. It may pass later."
        return GatewayTransientError(message, **facts)
    if _NO_PROVIDER in text:
        message = f"No provider serves {request.model!r}. Write it as LiteLLM does, provider first, as in openai/gpt-5."
        return GatewayFinalError(message, **facts)
    advice = next((_ADVICE[k.__name__] for k in type(error).__mro__ if k.__name__ in _ADVICE), "Change the request.")
    return GatewayFinalError(f"The provider of {request.model!r} rejects the call ({name}){says}. {advice}", **facts)


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Read how long a provider asks to wait.

    Args:
        headers: of the answer, names in lower case.
        now: the time, aware.

    Returns:
        Seconds, not negative, or None when it does not say or cannot be understood.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
            return float(value) * unit
    value = headers.get("retry-after", "")
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - now).total_seconds())


def _kind(error: BaseException) -> str | None:
    for parent in type(error).__mro__:
        if parent.__name__ in KINDS:
            return KINDS[parent.__name__]
        if parent.__name__ in _BY_STATUS:
            return _kind_of_status(getattr(error, "status_code", None))
    return None


def _kind_of_status(status: object) -> str:
    if status == 429:
        return _LIMITED
    if isinstance(status, int) and 400 <= status < 500 and status not in (408, 409, 425):
        return _FINAL
    return _TRANSIENT


def _headers(error: BaseException) -> dict[str, str]:
    found: dict[str, str] = {}
    sources = (getattr(getattr(error, "response", None), "headers", None), getattr(error, "headers", None))
    for source in (getattr(error, "litellm_response_headers", None), *sources):
        if isinstance(source, Mapping):
            found |= {str(k).lower(): str(v) for k, v in cast("Mapping[object, object]", source).items()}
    return found


def _own_words(error: BaseException, request: Request, key: str | None) -> str:
    """Quote the start of the provider's message, unless it repeats the conversation; keys are taken out."""
    if any(parent.__name__ == "JSONSchemaValidationError" for parent in type(error).__mro__):
        return ""  # holds the model's answer
    text = " ".join(str(error).split())
    text = re.sub(r"^(?:litellm\.)?(?:\w+(?:Error|Exception|Timeout): )+(?:\w+Exception - )?", "", text)[:_SAYS]
    given = [value for name, value in os.environ.items() if re.search(r"KEY|TOKEN|SECRET|PASSWORD", name)]
    for secret in (key or "", *given):
        if len(secret) >= 6:
            text = text.replace(secret, "[redacted: key]")
    said = " ".join(" ".join(message.content for message in request.messages).split())
    size = 16
    if any(text[at : at + size] in said for at in range(max(1, len(text) - size + 1))):
        return ""
    text = redact(text).rstrip(". ")
    return f": {text}" if text else ""
