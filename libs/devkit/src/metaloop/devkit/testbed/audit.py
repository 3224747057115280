"""The audit log of the API server: the only reliable count of the requests that it answered."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from metaloop.common.json import JsonObject, loads
from metaloop.common.objects.unstructured import child_object, integer, text
from metaloop.devkit.testbed.cluster import USER_AGENT

# The other clients of the API server: Kubernetes itself, people, and tests and benches.
_OTHERS = ("kube-", "kubectl", USER_AGENT, "metaloop-devkit")
_READS = frozenset({"get", "list"})
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_RECEIVED = "RequestReceived"
_POLL_SECONDS = 0.01


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
    """An audit log file, with one line for a request that is received and one for a request that is answered.

    The server writes the first line before it does anything, and the second some time after the effect of the request
    can be seen. So a test that has seen the effect finds the first line for certain, and has to wait for the second.
    """

    def __init__(self, path: Path) -> None:
        """Read the file at `path`, which need not exist yet."""
        self._path = path

    def mark(self) -> int:
        """The present end of the log, to read on from there later."""
        return self._path.stat().st_size if self._path.exists() else 0

    async def ours_since(self, mark: int, *, within_seconds: float = 30.0) -> list[Request]:
        """The services' requests that were received since a mark, in the order of their answers.

        Waits until those that were received before this call are answered; watches are not waited for. Events are left
        out: their number depends on a rate limit. Raises TimeoutError, which names the requests, when one of them has
        no answer in time.
        """
        deadline = time.monotonic() + within_seconds
        received, answered = self._since(mark)
        while missing := received.keys() - answered.keys():
            if time.monotonic() > deadline:
                named = ", ".join(f"{received[key].get('verb')} {received[key].get('requestURI')}" for key in sorted(missing))
                raise TimeoutError(f"not answered in {within_seconds:g} s: {named}")
            await asyncio.sleep(_POLL_SECONDS)
            _, answered = self._since(mark)
        return [_request(event) for event in answered.values()]

    def _since(self, mark: int) -> tuple[dict[str, JsonObject], dict[str, JsonObject]]:
        """What was received since a mark, and which of it was answered, by the request's ID."""
        received: dict[str, JsonObject] = {}
        answered: dict[str, JsonObject] = {}
        with self._path.open("rb") as log:
            log.seek(mark)
            for event in (loads(line) for line in log if line.endswith(b"\n")):
                if not _counts(event):
                    continue
                key = text(event, "auditID")
                if text(event, "stage") == _RECEIVED:
                    received[key] = event
                elif key in received:
                    answered[key] = event
        return received, answered


def tally(requests: list[Request]) -> Counter[str]:
    """How many requests of each verb and resource: `{"create configmaps": 3}`."""
    return Counter(f"{request.verb} {request.resource}" for request in requests)


def _counts(event: JsonObject) -> bool:
    """Whether a line is of a request that one of the services made, is no watch, and writes no Event."""
    is_ours = not text(event, "userAgent").startswith(_OTHERS)
    return is_ours and text(event, "verb") != "watch" and text(child_object(event, "objectRef"), "resource") != "events"


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
