"""The examples of docs/kernel.md do what the page says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kernel.md"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the wall is made of parts of Linux")


def test_the_example_shows_the_wall() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.S | re.M)

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)

    assert done.stderr == ""
    error, held = done.stdout.rsplit("\n", 2)[0], done.stdout.splitlines()[-1]
    assert "PermissionError: [Errno 13] Permission denied: '/etc/passwd'" in error
    assert held == "strict True"
