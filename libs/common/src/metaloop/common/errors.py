"""The root of our exceptions, transient or terminal, with API failures by reason.

    MetaloopError                  never raised itself
    ├── Transient                  trying again later may succeed
    │   ├── Unavailable            a peer (API server, bus, gateway) can't be reached or is overloaded
    │   │   └── NobodyThere        the bus knows of nobody who would answer
    │   ├── Conflict               the cluster moved on: read again, decide again
    │   └── LeaseLost              this worker may no longer act for the parent
    └── Terminal                   the same input fails the same way: somebody must change something
        ├── InvalidSpec            a controller's spec (its author's fault); names the field
        ├── InvalidAnswer          a webhook's answer (its author's fault); names the field
        ├── InvalidParent          a parent object (its owner's fault); names the field
        └── Refused                the API server said no: forbidden, invalid, not found

Whether a job is tried again is decided from these classes in one table, `reconciler/core/outcome.py`; nothing else looks at causes.
"""

from dataclasses import dataclass


class MetaloopError(Exception):
    """The root: catch it to catch what Metaloop raises on purpose, and nothing else."""


class Transient(MetaloopError):
    """Trying again later may succeed without anybody changing anything."""


class Unavailable(Transient):
    """A peer can't be reached, is overloaded, or went away in the middle.

    `retry_after_seconds` is the peer's own wish, where it told one.
    """

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class NobodyThere(Unavailable):
    """Nobody listens to what was asked, as far as the bus knows: it said so at once."""


class Conflict(Transient):
    """The object changed (or vanished, or was replaced) since we looked: observe and decide again."""


class LeaseLost(Transient):
    """The lease on a parent ran out before the sync was over: it must not write any more."""


class Terminal(MetaloopError):
    """The same input will fail the same way, until somebody changes it."""


class InvalidSpec(Terminal):
    """A controller's spec can't be served; `field` is the path of what is wrong with it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field


class InvalidAnswer(Terminal):
    """A webhook answered with something that is no answer; `field` is where."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field


class InvalidParent(Terminal):
    """A parent can't be synced as it stands; `field` is the path of what is wrong with it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiStatus:
    """What the API server said of a failed request: the parts of a `metav1.Status` that decisions need."""

    code: int
    reason: str
    message: str


class Refused(Terminal):
    """The API server said no to one request, for a reason that trying again won't mend."""

    def __init__(self, status: ApiStatus) -> None:
        super().__init__(f"{status.reason or status.code}: {status.message}")
        self.status = status
