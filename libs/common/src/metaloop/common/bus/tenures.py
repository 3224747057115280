"""A watcher asks whether another one serves a controller: answered, without a content, for as long as that is so."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from metaloop.common.bus.connect import Bus, Message
from metaloop.common.bus.messages import tenure_subject
from metaloop.common.errors import NobodyThere
from metaloop.common.job import ControllerId

_TIMEOUT_SECONDS = 0.3


async def is_served(bus: Bus, controller: ControllerId) -> bool:
    """Whether a watcher serves a controller, or still finishes what it began; `Unavailable` where there is one that doesn't answer in time."""
    try:
        await bus.request(tenure_subject(controller), b"", timeout_seconds=_TIMEOUT_SECONDS)
    except NobodyThere:
        return False
    return True


def answering_tenure(bus: Bus, controller: ControllerId, *, holds: Callable[[], bool]) -> AbstractAsyncContextManager[None]:
    """Tells who asks that we serve a controller, for the length of the block and as long as that `holds`."""

    async def answer(message: Message) -> None:
        if message.reply and holds():
            await bus.publish(message.reply, b"")

    return bus.listening(tenure_subject(controller), answer)
