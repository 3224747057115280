"""The hooks of the examples listen where they are told to: on loopback by default, on any address in a pod."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from metaloop.devkit.ports import free_port

EXAMPLES = Path(__file__).parents[2] / "examples"
HOOKS = sorted(EXAMPLES.glob("*/hook.py"))


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.parent.name)
@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2"], ids=["default", "given"])
def test_hook_listens_on_loopback_or_the_given_address(hook: Path, address: str):
    port = free_port()
    arguments = [str(port)] if address == "127.0.0.1" else [str(port), address]
    process = subprocess.Popen([sys.executable, "-u", hook, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        assert process.stdout.readline().strip() == f"serving hooks at http://{address}:{port}"
        with socket.create_connection((address, port), timeout=10):
            pass
    finally:
        process.kill()
        process.communicate()
