"""How the hooks of each kind of controller spell what all of them say."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Wording:
    """The keys of a flavour's requests and answers."""

    parent: str
    children: str
    has_changes: bool
    """Whether an answer may change the parent's own labels and annotations."""

    @cached_property
    def keys(self) -> frozenset[str]:
        """The fields of an answer."""
        changes = {"labels", "annotations"} if self.has_changes else set[str]()
        return frozenset({"status", self.children, "resyncAfterSeconds", "finalized"} | changes)


OF_COMPOSITES: Final = Wording(parent="parent", children="children", has_changes=False)
OF_DECORATORS: Final = Wording(parent="object", children="attachments", has_changes=True)
