"""The gateway on a network of two machines: one that vanishes, and a name that moves to another address."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path

import pytest
from in_process import target
from process import gateway_process
from webserver import Request, ServerConnection, never_answers, response, serving

from metaloop.common.hooks.call import PATH, TARGET_HEADER, Accepted

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="a second machine is a network namespace, which only root can make"
)

# Runs beside one another on one machine have networks of their own.
_FIRST_ADDRESS = ip_address("10.213.0.0") + os.getpid() % 2**13 * 8
HERE, ALSO_HERE, THERE = (str(_FIRST_ADDRESS + number) for number in (1, 3, 2))
NAMESPACE, OUR_END, THEIR_END = f"metaloop-{os.getpid()}", f"here-{os.getpid()}", f"there-{os.getpid()}"
HOSTS = Path("/etc/netns") / NAMESPACE / "hosts"
"""The /etc/hosts of the other machine."""


def run(command: str) -> None:
    subprocess.run(command.split(), check=True, capture_output=True)


@pytest.fixture
def there() -> Iterator[Sequence[str]]:
    """The prefix of a command that runs on another machine of the same network."""
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, HOSTS.parent)
        HOSTS.parent.mkdir(parents=True)
        HOSTS.touch()
        try:
            run(f"ip netns add {NAMESPACE}")
            undo.callback(run, f"ip netns del {NAMESPACE}")
            run(f"ip link add {OUR_END} type veth peer name {THEIR_END} netns {NAMESPACE}")
            undo.callback(run, f"ip link del {OUR_END}")
        except subprocess.CalledProcessError as refusal:
            pytest.skip(f"no network namespaces here: {refusal.stderr.decode().strip()}")
        for address in (HERE, ALSO_HERE):
            run(f"ip addr add {address}/29 dev {OUR_END}")
        run(f"ip link set {OUR_END} up")
        run(f"ip -n {NAMESPACE} addr add {THERE}/29 dev {THEIR_END}")
        run(f"ip -n {NAMESPACE} link set {THEIR_END} up")
        yield ("ip", "netns", "exec", NAMESPACE)


async def test_call_of_a_vanished_machine_ends_long_before_its_timeout(there: Sequence[str]):
    async with serving(never_answers) as hook, gateway_process(host=HERE) as gateway:
        header = f"{TARGET_HEADER}: {target({'url': hook.url(), 'timeout': '300s'})}"
        url = f"http://{HERE}:{gateway.client.base_url.port}{PATH}"
        caller = await asyncio.create_subprocess_exec(*there, "curl", "--silent", "--header", header, "--data", "{}", url)
        await hook.until(lambda it: it.in_flight == 1)

        run(f"ip -n {NAMESPACE} link set {THEIR_END} down")

        await hook.until(lambda it: it.open_connections == 0)
        caller.kill()
        await caller.wait()


async def test_name_that_moves_is_followed(there: Sequence[str]):
    """As the name of a Service that is deleted and created again. New connections go to its new address."""

    async def says_where_it_is_and_closes(_: Request, connection: ServerConnection) -> None:
        await connection.send(response(200, connection.writer.get_extra_info("sockname")[0].encode(), connection="close"))
        connection.close()

    async with (
        serving(says_where_it_is_and_closes, host="0.0.0.0") as hook,
        gateway_process(run_by=there, address=THERE, host=THERE) as gateway,
    ):
        url = f"http://hooks.prod:{hook.port}/"
        HOSTS.write_text(f"{HERE} hooks.prod\n")
        assert await gateway.call(url) == Accepted(body=HERE.encode())

        HOSTS.write_text(f"{ALSO_HERE} hooks.prod\n")

        async with asyncio.timeout(60):
            while await gateway.call(url) != Accepted(body=ALSO_HERE.encode()):
                pass
