"""The errors of API requests, by the reason in the API server's answer.

    Refused (Persistent)             common/errors.py; carries the ApiStatus
    ├── NotFound                     404
    ├── AlreadyExists                409 for a create
    ├── Forbidden                    403: access rules, admission, or a namespace that is being deleted
    └── Invalid                      422, and requests that are not sent because their path would be wrong
    Conflict (Transient)             409: the resourceVersion or uid differs, or another manager owns a field
    Expired (Transient)              410: the resourceVersion or continue token is too old
    Unavailable (Transient)          common/errors.py
    ├── Unauthorized                 401, even with fresh credentials
    ├── TooManyRequests              429: not executed
    ├── ServerTimeout                the server gave up: 500 ServerTimeout, 504
    ├── Unanswered                   no complete answer: the request may have been executed
    └── Unreadable                   an answer that no API server sends: a write may have been executed
    InvalidKubeconfig (Persistent)   the kubeconfig or service account is missing or invalid

Any other status below 500 is `Refused`, and any other from 500 on is `Unavailable`, with four exceptions that the API
server answers with 500 although it refuses the object: an apply that does not fit the schema, an object too large to
store, an invalid name, and an admission webhook that fails.
"""

import re
from typing import Final, Protocol

from metaloop.common.errors import ApiStatus, Conflict, MetaloopError, Persistent, Refused, Transient, Unavailable
from metaloop.common.faults import Fault
from metaloop.common.json import JSONDecodeError, JsonObject, is_object, loads
from metaloop.common.objects.unstructured import integer, text


class NotFound(Refused):
    """The object or the resource does not exist."""

    fault = Fault.NOT_FOUND


class AlreadyExists(Refused):
    """An object of this name exists."""

    fault = Fault.ALREADY_EXISTS


class Forbidden(Refused):
    """The request is not allowed, by access rules or admission, or because the namespace is being deleted."""

    fault = Fault.FORBIDDEN


class Invalid(Refused):
    """The object or the request violates the rules of its kind."""

    fault = Fault.INVALID


class Expired(Transient):
    """The resourceVersion or continue token is too old: list again."""

    fault = Fault.EXPIRED


class Unauthorized(Unavailable):
    """The API server rejects our credentials, even after they were read again."""

    fault = Fault.UNAUTHORIZED


class TooManyRequests(Unavailable):
    """The API server is overloaded and did not execute the request."""

    fault = Fault.TOO_MANY_REQUESTS


class ServerTimeout(Unavailable):
    """The API server gave up on the request, which may have been executed."""

    fault = Fault.SERVER_TIMEOUT


class Unanswered(Unavailable):
    """There was no complete answer: the request may have been executed."""

    fault = Fault.UNANSWERED


class Unreadable(Unavailable):
    """The answer is not one of an API server: it was corrupted, or can't be parsed."""

    fault = Fault.UNREADABLE


MAY_HAVE_WORKED: Final = (ServerTimeout, Unanswered, Unreadable)
"""After these errors it is unknown whether a write was executed."""


class InvalidKubeconfig(Persistent):
    """The kubeconfig or the pod's service account is missing or invalid."""

    fault = Fault.INVALID_KUBECONFIG


_REFUSALS: dict[str, type[Refused]] = {
    "NotFound": NotFound,
    "AlreadyExists": AlreadyExists,
    "Forbidden": Forbidden,
    "Invalid": Invalid,
}


class _UnavailableType(Protocol):
    def __call__(self, message: str, *, retry_after_seconds: float | None = None) -> Unavailable: ...


_OUTAGES: dict[str, _UnavailableType] = {
    "Unauthorized": Unauthorized,
    "TooManyRequests": TooManyRequests,
    "ServerTimeout": ServerTimeout,
    "Timeout": ServerTimeout,
}
_TRANSIENTS: dict[str, type[Transient]] = {
    "Conflict": Conflict,
    "Expired": Expired,
    "Gone": Expired,
}
_REASON_OF_CODE = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    504: "Timeout",
}


_SCHEMA_MISMATCHES = ("failed to create typed patch object", "failed to convert new object")
"""How the message begins when an applied object does not fit its schema: a number for a string, an unknown field, a
duplicate key."""
_REFUSED_WITH_500 = re.compile(
    r"etcdserver: request is too large|trying to send message larger than max|invalid resource name |failed calling webhook "
)
"""Messages with which a healthy API server answers 500 because of one object: it is too large for etcd or gRPC, its
name is not a path segment, or its admission webhook fails."""
_RBAC_DENIAL = re.compile(
    r'cannot (?P<verb>[a-z]+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)" '
    r'(?:in the namespace "(?P<namespace>[^"]+)"|at the cluster scope)'
)
"""How the authorizer says which permission is missing."""
_READS = ("get", "list", "watch")
"""A reflector needs all three; which one it lacks first does not matter."""
_QUOTED_OBJECT = re.compile(r"(?<=Invalid value: )\{.{80,}\}(?=: )", re.DOTALL)


def refusal(status: ApiStatus, *, request: str, retry_after_seconds: float | None = None) -> MetaloopError:
    """The exception for a failure status; its message names `request`."""
    is_mismatch = status.message.startswith(_SCHEMA_MISMATCHES)
    reason = "BadRequest" if is_mismatch else status.reason or _REASON_OF_CODE.get(status.code, "")
    message = f"{_brief(status.message)} ({request})"
    if rule := missing_rule(status.message):
        message = f"{message}: to allow it, add {rule}"
    named = ApiStatus(code=status.code, reason=reason, message=message)
    if refused := _REFUSALS.get(reason):
        return refused(named)
    if transient := _TRANSIENTS.get(reason):
        return transient(named.message)
    if outage := _OUTAGES.get(reason):
        return outage(named.message, retry_after_seconds=retry_after_seconds)
    if status.code >= 500 and not is_mismatch and not _REFUSED_WITH_500.search(status.message):
        return Unavailable(f"{status.code} {named.message}", retry_after_seconds=retry_after_seconds)
    return Refused(named)


def missing_rule(message: str) -> str:
    """The rule that would allow what the authorizer denied, and where to add it; empty for other messages."""
    denied = _RBAC_DENIAL.search(message)
    if denied is None:
        return ""
    verb, namespace = denied["verb"], denied["namespace"]
    verbs = ", ".join(_READS if verb in _READS else (verb,))
    rule = f'{{apiGroups: ["{denied["group"]}"], resources: [{denied["resource"]}], verbs: [{verbs}]}}'
    return f"{rule} to a Role in the namespace {namespace}" if namespace else f"{rule} to a ClusterRole"


def _brief(message: str) -> str:
    """The message without the complete objects that validation quotes.

    The reason follows them, and would be cut off.
    """
    return _QUOTED_OBJECT.sub("{…}", message)


def api_status(code: int, body: bytes) -> ApiStatus:
    """The failure in an answer's body. A body that is not a `metav1.Status` becomes the message."""
    try:
        raw = loads(body)
    except JSONDecodeError:
        raw = None
    if is_object(raw) and raw.get("kind") == "Status":
        return status_of(raw, code=code)
    return ApiStatus(code=code, reason="", message=body[:300].decode(errors="replace").strip() or f"status {code}")


def status_of(raw: JsonObject, *, code: int) -> ApiStatus:
    """The parts of a `metav1.Status` that decisions need. `code` is used if it has none."""
    return ApiStatus(code=integer(raw, "code") or code, reason=text(raw, "reason"), message=text(raw, "message"))
