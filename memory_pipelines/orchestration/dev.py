"""Starts Dagster's UI, daemon and code location on this project."""

import os
import signal
import socket
import subprocess
import sys
from types import FrameType

from memory_pipelines.errors import SettingsError
from memory_pipelines.orchestration.instance import dagster_home
from memory_pipelines.settings import Settings

LOCATION = "memory_pipelines.orchestration.location"

GRACE_SECONDS = 75.0
"""Dagster gives its own children 60 seconds to end."""


def run_dev(settings: Settings, *, port: int = 3000, host: str = "127.0.0.1") -> int:
    """Run Dagster until it ends or is interrupted; ends its processes with it.

    Args:
        settings: where the project's database and Dagster's folder are.
        port: of the UI.
        host: of the UI.

    Returns:
        The exit code: 0 after Ctrl-C or a request to terminate.

    Raises:
        SettingsError: the port is taken, or Dagster's folder cannot be used; nothing was started.
    """
    check_port(host, port)
    child = subprocess.Popen(
        dev_command(host, port),
        env=dev_environment(settings),
        start_new_session=True,  # signals reach it through us, once each
    )
    asked = False

    def forward(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        child.send_signal(signal.SIGINT)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while child.poll() is None:
            try:
                child.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                if asked:
                    break
        code = child.poll()
        return 0 if asked else code or 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
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
