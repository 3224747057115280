import asyncio
from dataclasses import dataclass, field
from random import Random
from time import monotonic, time

import pytest

from metaloop.common import machine


@dataclass
class OtherMachine:
    """A machine whose clocks stand still."""

    random: Random = field(default_factory=lambda: Random(1))

    def monotonic(self) -> float:
        return 5.0

    def boot_time(self) -> float:
        return 7.0

    def wall_time(self) -> float:
        return 86_400.0


def test_without_another_machine_the_clocks_are_this_ones():
    assert machine.monotonic() == pytest.approx(monotonic(), abs=5)
    assert machine.wall_time() == pytest.approx(time(), abs=5)
    assert machine.boot_time() >= machine.monotonic() - 5


def test_within_the_block_clocks_and_numbers_are_the_other_machines():
    with machine.running_on(OtherMachine()):
        read = machine.monotonic(), machine.boot_time(), machine.utc_now().isoformat(), machine.unique_token()

    assert read == (5.0, 7.0, "1970-01-02T00:00:00+00:00", f"{Random(1).getrandbits(128):032x}")


async def test_a_task_keeps_the_machine_that_it_was_started_on():
    async def read() -> float:
        await asyncio.sleep(0)
        return machine.monotonic()

    with machine.running_on(OtherMachine()):
        task = asyncio.create_task(read())

    assert await task == 5.0
    assert machine.monotonic() != 5.0


def test_a_context_has_its_own_machine():
    context = machine.context_on(OtherMachine())

    assert context.run(machine.monotonic) == 5.0
    assert machine.monotonic() != 5.0


def test_tokens_differ():
    assert len({machine.unique_token() for _ in range(100)}) == 100
