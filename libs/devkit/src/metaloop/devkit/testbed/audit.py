"""The audit log of the API server: the only reliable count of the requests that it answered."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from metaloop.common.json import JsonObject, loads
from metaloop.common.objects.unstructured import child_object, integer, text
from metaloop.devkit.testbed.cluster import USER_AGENT

# The other clients of the API server: Kubernetes itself, people, and tests and benches.
_OTHERS = ("kube-", "kubectl", USER_AGENT, "metaloop-devkit")
_READS = frozenset({"get", "list"})
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One answered request."""

    verb: str
    resource: str
    """The plural name, with the subresource after a slash: `things/status`."""
    namespace: str
    name: str
    user_agent: str
    code: int
    at: str
    """When the server received it, by the server's clock."""

    @property
    def is_ours(self) -> bool:
        """Whether one of Metaloop's services sent it."""
        return not self.user_agent.startswith(_OTHERS)

    @property
    def is_write(self) -> bool:
        """Whether it is a write."""
        return self.verb in _WRITES

    @property
    def is_read(self) -> bool:
        """Whether it is a get or a list; a watch is not counted as a read."""
        return self.verb in _READS


class AuditLog:
    """An audit log file."""

    def __init__(self, path: Path) -> None:
        """Read the file at `path`, which need not exist yet."""
        self._path = path

    def mark(self) -> int:
        """The present end of the log, to read on from there later."""
        return self._path.stat().st_size if self._path.exists() else 0

    def ours_since(self, mark: int) -> list[Request]:
        """The services' requests since a mark, without Events: their number depends on a rate limit."""
        return [request for request in self._since(mark) if request.is_ours and request.resource != "events"]

    def _since(self, mark: int) -> Iterator[Request]:
        with self._path.open("rb") as log:
            log.seek(mark)
            yield from (_request(loads(line)) for line in log if line.endswith(b"\n"))


def tally(requests: list[Request]) -> Counter[str]:
    """How many requests of each verb and resource: `{"create configmaps": 3}`."""
    return Counter(f"{request.verb} {request.resource}" for request in requests)


def _request(event: JsonObject) -> Request:
    target = child_object(event, "objectRef")
    resource, subresource = text(target, "resource"), text(target, "subresource")
    return Request(
        verb=text(event, "verb"),
        resource=f"{resource}/{subresource}" if subresource else resource,
        namespace=text(target, "namespace"),
        name=text(target, "name"),
        user_agent=text(event, "userAgent"),
        code=integer(child_object(event, "responseStatus"), "code"),
        at=text(event, "requestReceivedTimestamp"),
    )
