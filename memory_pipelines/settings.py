"""Settings, read once from the environment (prefix MEMORY_PIPELINES_) or given in code."""

import os
import re
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from memory_pipelines.errors import MemoryPipelinesWarning, SettingsError
from memory_pipelines.gateway.base import OFFLINE

PREFIX = "MEMORY_PIPELINES_"

# Kubernetes gives these to every container beside a service that is called memory-pipelines.
_OF_A_SERVICE = re.compile(rf"{PREFIX}(SERVICE_(HOST|PORT.*)|PORT(_.*)?)")


class Settings(BaseSettings):
    """How this process finds its database, models and folders; each field is a variable MEMORY_PIPELINES_<NAME>.

    Keys and addresses of model providers are not here: LiteLLM reads them from its own variables (OPENAI_API_KEY,
    OPENAI_API_BASE, ANTHROPIC_API_KEY and so on).
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    home: Annotated[Path, NoDecode] = Field(
        default=Path(".memory-pipelines"), description="Folder of the database, Dagster's files and trajectories."
    )
    database_url: str | None = Field(
        default=None, description="Where sessions and memory are; default sqlite:///<home>/memory.db."
    )
    dagster_home: Path | None = Field(
        default=None, description="Dagster's own folder when DAGSTER_HOME is not set; default <home>/dagster."
    )
    model: str = Field(
        default=OFFLINE,
        description="Model of pipelines that name none, as LiteLLM writes it (openai/gpt-5). `offline` is not an LLM.",
    )
    profile: Literal["small", "strong"] | None = Field(
        default=None, description="How stages talk to the model; default by model, `small` when unknown."
    )
    context_tokens: int | None = Field(
        default=None, ge=2048, description="The model's context, prompt and answer together; default by model."
    )
    window_tokens: int = Field(default=2000, ge=200, description="New conversation in one distill call, in tokens.")
    concurrent_calls: int = Field(default=16, ge=1, description="Model calls under way at once in one process.")
    requests_per_minute: int | None = Field(default=None, ge=1, description="Model calls a minute in one process.")
    tokens_per_minute: int | None = Field(default=None, ge=1, description="Tokens a minute in one process.")
    call_seconds: float = Field(default=120.0, gt=0, description="Patience with one model call, in seconds.")
    kernel: str = Field(default="pool", description="Where blocks run: pool, subprocess, or inprocess (no isolation).")
    isolation: Literal["strict", "best_effort"] | None = Field(
        default=None,
        description="What a kernel does where its wall cannot stand: refuse (strict), or warn. Default strict.",
    )
    trajectories: bool = Field(default=True, description="Whether rollouts are kept as JSONL in <home>/trajectories.")

    @property
    def database(self) -> str:
        """The database URL, with the default filled in."""
        return self.database_url or f"sqlite:///{self.home.absolute() / 'memory.db'}"

    @property
    def dagster(self) -> Path:
        """Dagster's folder, with the default filled in."""
        return (self.dagster_home or self.home / "dagster").absolute()


def read_settings(**given: object) -> Settings:
    """Read the settings.

    Args:
        given: fields that win over the environment.

    Raises:
        SettingsError: a value cannot be used; names the variable and what is allowed.

    Warns:
        MemoryPipelinesWarning: a variable looks like a setting and is none.
    """
    for message in unknown_variables(os.environ):
        warnings.warn(message, MemoryPipelinesWarning, stacklevel=2)
    try:
        return Settings(**given)  # pyright: ignore[reportArgumentType]
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise SettingsError(
            f"{PREFIX}{field.upper()}: {first['msg']}; got {first.get('input')!r}", field=field
        ) from error


def unknown_variables(names: Iterable[str]) -> list[str]:
    """Return a message for each variable that looks like a setting and is none.

    Args:
        names: of all variables of the environment.
    """
    known = [f"{PREFIX}{field.upper()}" for field in Settings.model_fields]
    messages: list[str] = []
    for name in sorted(names):
        written = name.upper()  # settings are read whatever the case
        if not written.startswith(PREFIX) or written in known or _OF_A_SERVICE.fullmatch(written):
            continue
        near = get_close_matches(written.removeprefix(PREFIX), [one.removeprefix(PREFIX) for one in known], n=1)
        hint = f"did you mean {PREFIX}{near[0]}?" if near else f"there are {', '.join(known)}"
        messages.append(f"{name} is set, but no setting has this name, so it does nothing; {hint}")
    return messages
