"""Remembers which pauses were told, so that each is told once, and whose status has no room for them."""

from collections import OrderedDict
from typing import Final

from metaloop.common.objects.resource import ResourceId

_REMEMBERED: Final = 10_000


class PauseNotices:
    """What this process knows of paused parents."""

    def __init__(self) -> None:
        self._told: OrderedDict[str, None] = OrderedDict()
        """The UIDs of paused parents that were told of, the latest last."""
        self._roomless: set[ResourceId] = set()
        """Resources whose objects' status doesn't keep a condition."""

    def is_news(self, uid: str) -> bool:
        """Whether nobody asked this about a parent yet, since it was paused."""
        if uid in self._told:
            return False
        if len(self._told) >= _REMEMBERED:
            self._told.popitem(last=False)
        self._told[uid] = None
        return True

    def forget(self, uid: str) -> None:
        """The parent isn't paused (any more)."""
        self._told.pop(uid, None)

    def has_room(self, resource: ResourceId) -> bool:
        """Whether the status of such objects keeps a condition, as far as is known."""
        return resource not in self._roomless

    def note_roomless(self, resource: ResourceId) -> None:
        """The status of such an object lost the condition that it was given, or refused it."""
        self._roomless.add(resource)
