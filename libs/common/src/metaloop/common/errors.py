"""The root of our exceptions, by whether trying again can help.

    MetaloopError                  never raised itself
    ├── Transient                  nobody has to change anything: retried
    │   ├── Unavailable            a peer (API server, bus, gateway) can't be reached or is overloaded
    │   │   ├── NobodyThere        the bus knows of nobody who would answer
    │   │   └── OtherCluster       the bus belongs to another cluster
    │   ├── Conflict               the cluster moved on: read again, decide again
    │   └── LeaseLost              this worker may no longer act for the parent
    ├── Persistent                 somebody must change something that no watch shows us: retried with backoff
    │   ├── InvalidAnswer          a webhook's answer (its author's fault); names the field
    │   └── Refused                the API server said no: forbidden, invalid, not found
    └── Terminal                   an object must change that a watch shows us (parent, controller): not retried before
        ├── InvalidSpec            a controller's spec (its author's fault); names the field
        └── InvalidParent          a parent object (its owner's fault); names the field

Each class names its fault. What a fault means for a job stands in one table, `faults.py`; a test compares it with this
tree.
"""

from dataclasses import dataclass

from metaloop.common.faults import AnyFault, Fault


class MetaloopError(Exception):
    """The root: catch it to catch what Metaloop raises on purpose, and nothing else."""

    fault: AnyFault = Fault.CRASHED
    """What the end of a sync or a call by this exception is called between services and for users.

    A class without a fault of its own never ends one; where it does, that is unforeseen.
    """


class Transient(MetaloopError):
    """Trying again later may succeed without anybody changing anything."""


class Unavailable(Transient):
    """A peer can't be reached, is overloaded, or went away in the middle.

    `retry_after_seconds` is how long the peer asks to wait, if it does.
    """

    fault = Fault.UNAVAILABLE

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class NobodyThere(Unavailable):
    """Nobody listens to what was asked, as far as the bus knows: it said so at once."""

    fault = Fault.NOBODY_THERE


class OtherCluster(Unavailable):
    """The job stream belongs to another cluster: this one's services must not use it. Its text says what helps."""


class Conflict(Transient):
    """The object changed (or vanished, or was replaced) since we looked: observe and decide again."""

    fault = Fault.CONFLICT


class LeaseLost(Transient):
    """The lease on a parent ran out before the sync was over: it must not write any more."""

    fault = Fault.LEASE_LOST


class Persistent(MetaloopError):
    """The same input fails the same way until somebody changes something that nobody here watches.

    So it is tried again, with a backoff that grows.
    """


class InvalidAnswer(Persistent):
    """A webhook answered with something that is no answer; `field` is where."""

    fault = Fault.INVALID_ANSWER

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiStatus:
    """What the API server said of a failed request: the parts of a `metav1.Status` that decisions need."""

    code: int
    reason: str
    message: str


class Refused(Persistent):
    """The API server said no to one request. Nothing but a change in the cluster will make it say yes."""

    fault = Fault.REFUSED

    def __init__(self, status: ApiStatus) -> None:
        super().__init__(f"{status.reason or status.code}: {status.message}")
        self.status = status


class Terminal(MetaloopError):
    """Not retried until the object at fault changes, which a watch shows: the same input fails the same way."""


class InvalidSpec(Terminal):
    """A controller's spec can't be served; `field` is the path of what is wrong with it."""

    fault = Fault.INVALID_SPEC

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field


class InvalidParent(Terminal):
    """A parent can't be synced as it stands; `field` is the path of what is wrong with it."""

    fault = Fault.INVALID_PARENT

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
