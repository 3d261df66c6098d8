"""Starts Dagster's UI, daemon and code location on this project."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from types import FrameType

from memory_pipelines.errors import MemoryPipelinesError, SettingsError
from memory_pipelines.orchestration.instance import dagster_home
from memory_pipelines.settings import Settings

LOCATION = "memory_pipelines.orchestration.location"

GRACE_SECONDS = 75
"""Dagster gives its own children 60 seconds to end."""


def run_dev(settings: Settings, *, port: int = 3000, host: str = "127.0.0.1") -> None:
    """Run Dagster until Ctrl-C or a request to terminate, and end its processes.

    Args:
        settings: where the project's database and Dagster's folder are.
        port: of the UI.
        host: of the UI.

    Raises:
        SettingsError: the port is taken, or Dagster's folder cannot be used; nothing was started.
        MemoryPipelinesError: Dagster ended by itself.
    """
    check_port(host, port)
    command, environment = dev_command(host, port), dev_environment(settings)
    child: subprocess.Popen[bytes] | None = None
    asked = False

    def forward(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        if child is not None:
            child.send_signal(signal.SIGINT)

    # Before Dagster starts: where this process ignores interrupts, as one started by a script with `&` does, Dagster
    # would ignore them too.
    heard = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # `nohup` stays in force
        heard.append(signal.SIGHUP)
    before = {number: signal.signal(number, forward) for number in heard}
    try:
        # A session of its own: signals reach it through us, once each.
        child = subprocess.Popen(command, env=environment, start_new_session=True)
        if asked:
            child.send_signal(signal.SIGINT)
        patience = GRACE_SECONDS
        while child.poll() is None and patience > 0:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(1)
            patience -= asked
        if not asked:  # Dagster says 0 also when its UI or daemon died
            raise MemoryPipelinesError(
                f"Dagster ended by itself (exit code {child.returncode}); what it printed last says why"
            )
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if child is not None:
            end_group(child.pid)
            child.wait()


def dev_command(host: str, port: int) -> list[str]:
    """Return the command that starts UI, daemon and code location."""
    return [sys.executable, "-m", "dagster", "dev", "-m", LOCATION, "--host", host, "--port", str(port)]


def dev_environment(settings: Settings) -> dict[str, str]:
    """Return the environment for Dagster's processes: the settings as they are here, with absolute paths."""
    environment = dict(os.environ)
    for name, value in settings.model_dump(mode="json").items():
        if value is not None:
            environment[f"MEMORY_PIPELINES_{name.upper()}"] = str(value)
    environment["MEMORY_PIPELINES_HOME"] = str(settings.home.absolute())
    environment["MEMORY_PIPELINES_DATABASE_URL"] = settings.database
    environment["DAGSTER_HOME"] = str(dagster_home(settings))
    environment["DAGSTER_DISABLE_TELEMETRY"] = "1"
    return environment


def check_port(host: str, port: int) -> None:
    """Refuse a port on which something listens.

    Raises:
        SettingsError: names the port and how to choose another.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise SettingsError(
                f"{host}:{port} cannot be used for the Dagster UI: {error.strerror}; choose another port with --port,"
                f" for example --port {port + 1}",
                host=host,
                port=port,
            ) from error


def end_group(group: int) -> None:
    """End what is left of the processes that were started together."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
