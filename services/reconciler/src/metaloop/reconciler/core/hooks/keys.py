"""How the hooks of each kind of controller spell what all of them say."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final


@dataclass(frozen=True, kw_only=True)
class HookKeys:
    """The keys of a kind's requests and answers."""

    parent: str
    children: str
    has_changes: bool
    """Whether an answer may change the parent's own labels and annotations."""

    @cached_property
    def answer_fields(self) -> frozenset[str]:
        """The fields of an answer."""
        changes = {"labels", "annotations"} if self.has_changes else set[str]()
        return frozenset({"status", self.children, "resyncAfterSeconds", "finalized"} | changes)


COMPOSITE_KEYS: Final = HookKeys(parent="parent", children="children", has_changes=False)
DECORATOR_KEYS: Final = HookKeys(parent="object", children="attachments", has_changes=True)
