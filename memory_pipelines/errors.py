"""All errors of the project, as one tree.

MemoryPipelinesError
    InvalidInputError          INVALID_PARAMETER_VALUE   final
    NotFoundError              NOT_FOUND                 final
    AlreadyExistsError         ALREADY_EXISTS            final
    AbortedError               ABORTED                   final (the state of the thing forbids it now)
        RunInFlightError
        ConflictError                                    retryable (somebody wrote in between)
    PermissionDeniedError      PERMISSION_DENIED         final
    SettingsError              INVALID_PARAMETER_VALUE   final
    UnavailableError           UNAVAILABLE               retryable (a service we need is away)
        StoreUnavailableError
    GatewayError                                         what a model provider answered
        GatewayTransientError  UNAVAILABLE               retryable
        RateLimitedError       RESOURCE_EXHAUSTED        retryable, may carry retry_after seconds
        GatewayFinalError      FAILED_PRECONDITION       final (key, model name, quota, bad request)
        ContextTooLongError    FAILED_PRECONDITION       final for this request; a smaller one may pass
    StageError                                           a piece of work of an actor that came to nothing
        BadOutputError         DATA_LOSS                 final for this run: unreadable, truncated, wrong type
        RefusedError           DATA_LOSS                 final for this run: the model refused
        AwaitingReviewError    FAILED_PRECONDITION       final until a person decides on a proposal
        SetAsideError          FAILED_PRECONDITION       final until retried or skipped by a person
    BudgetExceededError        RESOURCE_EXHAUSTED        final for this run
    DeadlineError              DEADLINE_EXCEEDED         retryable (what was waited for goes on)
    CancelledRunError          CANCELLED                 final for this run
    KernelError                                          a MemEx kernel
        KernelDiedError        INTERNAL                  retryable
        KernelUnavailableError FAILED_PRECONDITION       final (cannot start on this machine)
        ToolError              INVALID_PARAMETER_VALUE   shown to the model, which may mend its call

An error carries plain values as attributes, never objects of the domain, so that this file imports nothing.
"""

from typing import Any, ClassVar


class MemoryPipelinesError(Exception):
    """Base of all errors: a status word, facts as attributes, and whether trying again can help."""

    status: ClassVar[str] = "INTERNAL"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **facts: Any) -> None:
        """Keep the message and the facts.

        Args:
            message: what was got, what is allowed, and what to do next.
            facts: plain values (ids, limits, seconds), readable as attributes of the error.
        """
        super().__init__(message)
        self.message = message
        self.facts = facts

    def __getattr__(self, name: str) -> Any:
        facts: dict[str, Any] = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        raise AttributeError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.facts)


class MemoryPipelinesWarning(UserWarning):
    """What a person should know and nothing fails for; the command line prints it as one line."""


def _rebuild(kind: type[MemoryPipelinesError], message: str, facts: dict[str, Any]) -> MemoryPipelinesError:
    return kind(message, **facts)


class InvalidInputError(MemoryPipelinesError):
    """What was given cannot be used; nothing was changed."""

    status = "INVALID_PARAMETER_VALUE"


class NotFoundError(MemoryPipelinesError):
    """The named thing does not exist."""

    status = "NOT_FOUND"


class AlreadyExistsError(MemoryPipelinesError):
    """A thing of this name or key exists."""

    status = "ALREADY_EXISTS"


class AbortedError(MemoryPipelinesError):
    """The present state of the thing forbids the operation."""

    status = "ABORTED"


class RunInFlightError(AbortedError):
    """The pipeline has a run in flight; its full name is in the message and in `run`."""

    @classmethod
    def of(cls, run: str) -> "RunInFlightError":
        """Return the error about the run of this full name."""
        return cls(f"{run} is in flight; wait for it, or end it: `memory-pipelines pipeline cancel {run}`", run=run)


class ConflictError(AbortedError):
    """Somebody wrote between our read and our write."""

    retryable = True


class PermissionDeniedError(MemoryPipelinesError):
    """The principal may not do this."""

    status = "PERMISSION_DENIED"


class SettingsError(MemoryPipelinesError):
    """A setting cannot be used."""

    status = "INVALID_PARAMETER_VALUE"


class UnavailableError(MemoryPipelinesError):
    """A service that is needed does not answer."""

    status = "UNAVAILABLE"
    retryable = True


class StoreUnavailableError(UnavailableError):
    """The database does not answer, is locked for too long, or its disk is full."""


class GatewayError(MemoryPipelinesError):
    """A model provider answered with an error."""


class GatewayTransientError(GatewayError):
    """The same request may pass in a moment."""

    status = "UNAVAILABLE"
    retryable = True


class RateLimitedError(GatewayTransientError):
    """Too many requests; `retry_after` seconds when the provider said so, else None."""

    status = "RESOURCE_EXHAUSTED"


class GatewayFinalError(GatewayError):
    """The same request will fail again: key, model name, quota or a malformed request."""

    status = "FAILED_PRECONDITION"


class ContextTooLongError(GatewayFinalError):
    """The request is longer than the model's context; a smaller one may pass."""


class StageError(MemoryPipelinesError):
    """A piece of work of one actor came to nothing; memory is as it was."""


class BadOutputError(StageError):
    """The model's output could not be read: malformed, truncated, empty or of the wrong type."""

    status = "DATA_LOSS"


class RefusedError(StageError):
    """The model refused to do the work."""

    status = "DATA_LOSS"


class AwaitingReviewError(StageError):
    """A proposal of this actor and stage is open; approve or reject it."""

    status = "FAILED_PRECONDITION"


class SetAsideError(StageError):
    """A window failed in several runs and waits for `pipeline retry` or `pipeline skip`."""

    status = "FAILED_PRECONDITION"


class BudgetExceededError(MemoryPipelinesError):
    """A limit on calls, tokens, money or time was reached; `limit` and `spent` say which."""

    status = "RESOURCE_EXHAUSTED"


class DeadlineError(MemoryPipelinesError):
    """The time given for waiting is up; what was waited for goes on."""

    status = "DEADLINE_EXCEEDED"
    retryable = True


class CancelledRunError(MemoryPipelinesError):
    """The run was cancelled; what is finished stays, the rest resumes next time."""

    status = "CANCELLED"


class KernelError(MemoryPipelinesError):
    """A MemEx kernel failed."""


class KernelDiedError(KernelError):
    """The kernel's process ended; its variables are lost."""

    retryable = True


class KernelUnavailableError(KernelError):
    """The kernel cannot start on this machine."""

    status = "FAILED_PRECONDITION"


class ToolError(KernelError):
    """A tool was called wrongly or failed; the message is shown to the model."""

    status = "INVALID_PARAMETER_VALUE"
