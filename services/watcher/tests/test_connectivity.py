"""Whether the broker answered lately: what a leader asks itself before it goes on leading."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from metaloop.common.errors import Unavailable
from metaloop.common.testing.polling import eventually
from metaloop.watcher.connectivity import BrokerConnectivity


class AskedBroker:
    """A broker that answers, or doesn't."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_away = False

    async def check(self) -> None:
        """Count the question, and answer it."""
        self.asked += 1
        if self.is_away:
            raise Unavailable("no broker")


@asynccontextmanager
async def asking(broker: AskedBroker, *, patience_seconds: float) -> AsyncIterator[BrokerConnectivity]:
    """The connectivity of a broker that is asked, for as long as the block lasts."""
    connectivity = BrokerConnectivity(broker, patience_seconds=patience_seconds)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(connectivity.run())
        yield connectivity
        task.cancel()


async def test_broker_is_asked_at_once_and_again_and_again():
    broker = AskedBroker()

    async with asking(broker, patience_seconds=60):
        await eventually(lambda: broker.asked >= 2)


async def test_broker_that_answers_is_not_cut_off():
    broker = AskedBroker()

    async with asking(broker, patience_seconds=60) as connectivity:
        await eventually(lambda: broker.asked >= 1)

        assert not connectivity.is_cut_off()


async def test_broker_that_does_not_answer_is_cut_off_when_patience_ends():
    broker = AskedBroker()
    broker.is_away = True

    async with asking(broker, patience_seconds=0.5) as connectivity:
        early = connectivity.is_cut_off()

        await eventually(connectivity.is_cut_off)

    assert not early


async def test_broker_that_answers_again_is_cut_off_no_more():
    broker = AskedBroker()
    broker.is_away = True

    async with asking(broker, patience_seconds=0.5) as connectivity:
        await eventually(connectivity.is_cut_off)
        broker.is_away = False

        await eventually(lambda: not connectivity.is_cut_off())
