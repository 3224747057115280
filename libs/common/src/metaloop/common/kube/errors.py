"""What the API server's refusals and silences are to us, by the reason that it gives.

    Refused (Persistent)             common/errors.py; carries the ApiStatus
    ├── NotFound                     404
    ├── AlreadyExists                409 for a create
    ├── Forbidden                    403: access rules, admission, or a namespace that is being deleted
    └── Invalid                      422, and what we refuse to send: it could never be the request that was meant
    Conflict (Transient)             409: another resourceVersion or uid than ours, or another field manager
    Expired (Transient)              410: a resourceVersion or continue token from too long ago
    Unavailable (Transient)          common/errors.py
    ├── Unauthorized                 401, also with fresh credentials
    ├── TooManyRequests              429: not executed
    ├── ServerTimeout                the server gave up on it: 500 ServerTimeout, 504
    ├── Unanswered                   the connection broke or we gave up waiting: may have been executed
    └── Unreadable                   what came is nothing that an API server says: a write may have been executed
    InvalidKubeconfig (Persistent)   the way to the cluster is missing or makes no sense: its owner's fault

Any other status below 500 is `Refused`, any other from 500 on is `Unavailable`: but for what is refused with 500. That is an apply that doesn't fit its kind's
schema, an object that is too large to be stored, a name that can't be one, and an object whose admission webhook can't be asked.
"""

import re
from typing import Final, Protocol

from metaloop.common.errors import ApiStatus, Conflict, MetaloopError, Persistent, Refused, Transient, Unavailable
from metaloop.common.faults import Fault
from metaloop.common.json import JSONDecodeError, JsonObject, is_object, loads
from metaloop.common.objects.unstructured import integer, text


class NotFound(Refused):
    """There is no such object, or no such resource."""

    fault = Fault.NOT_FOUND


class AlreadyExists(Refused):
    """An object of this name is there already."""

    fault = Fault.ALREADY_EXISTS


class Forbidden(Refused):
    """We may not do this: access rules, admission, or a namespace that is being deleted."""

    fault = Fault.FORBIDDEN


class Invalid(Refused):
    """The object or the request breaks the rules of its kind."""

    fault = Fault.INVALID


class Expired(Transient):
    """The resourceVersion or continue token is from too long ago: list again."""

    fault = Fault.EXPIRED


class Unauthorized(Unavailable):
    """The API server doesn't know us, not even with credentials read anew."""

    fault = Fault.UNAUTHORIZED


class TooManyRequests(Unavailable):
    """The API server has too much to do and did not execute the request."""

    fault = Fault.TOO_MANY_REQUESTS


class ServerTimeout(Unavailable):
    """The API server gave up on the request, which it may have executed."""

    fault = Fault.SERVER_TIMEOUT


class Unanswered(Unavailable):
    """No whole answer came: the request may have been executed."""

    fault = Fault.UNANSWERED


class Unreadable(Unavailable):
    """What came is nothing that an API server says: garbled on its way, or beyond what we can read."""

    fault = Fault.UNREADABLE


MAY_HAVE_WORKED: Final = (ServerTimeout, Unanswered, Unreadable)
"""After these nobody knows whether a write was executed."""


class InvalidKubeconfig(Persistent):
    """The kubeconfig, or the pod's own way to the API server, is missing or makes no sense."""

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


_MISFITS = ("failed to create typed patch object", "failed to convert new object")
"""How the message begins where what was applied doesn't fit its kind: a number for text, a field that there isn't, one key twice."""
_REFUSED_FOR_ITSELF = re.compile(
    r"etcdserver: request is too large|trying to send message larger than max|invalid resource name |failed calling webhook "
)
"""What an API server in good health says with 500 of one object: it is too large for etcd, or for the way there; its name would need a path of its own; or nobody
answers who has to admit it."""
_QUOTED_OBJECT = re.compile(r"(?<=Invalid value: )\{.{80,}\}(?=: )", re.DOTALL)


def refusal(status: ApiStatus, *, request: str, retry_after_seconds: float | None = None) -> MetaloopError:
    """The exception for a status that is no success; `request` says what was asked, for the message."""
    is_misfit = status.message.startswith(_MISFITS)
    reason = "BadRequest" if is_misfit else status.reason or _REASON_OF_CODE.get(status.code, "")
    named = ApiStatus(code=status.code, reason=reason, message=f"{_brief(status.message)} ({request})")
    if refused := _REFUSALS.get(reason):
        return refused(named)
    if transient := _TRANSIENTS.get(reason):
        return transient(named.message)
    if outage := _OUTAGES.get(reason):
        return outage(named.message, retry_after_seconds=retry_after_seconds)
    if status.code >= 500 and not is_misfit and not _REFUSED_FOR_ITSELF.search(status.message):
        return Unavailable(f"{status.code} {named.message}", retry_after_seconds=retry_after_seconds)
    return Refused(named)


def _brief(message: str) -> str:
    """A message without the whole objects that validation quotes: what is wrong with them comes last, and would be cut off."""
    return _QUOTED_OBJECT.sub("{…}", message)


def api_status(code: int, body: bytes) -> ApiStatus:
    """What an answer's body says of its failure; a body that is no `metav1.Status` becomes the message as it is."""
    try:
        raw = loads(body)
    except JSONDecodeError:
        raw = None
    if is_object(raw) and raw.get("kind") == "Status":
        return status_of(raw, code=code)
    return ApiStatus(code=code, reason="", message=body[:300].decode(errors="replace").strip() or f"status {code}")


def status_of(raw: JsonObject, *, code: int) -> ApiStatus:
    """The parts of a `metav1.Status` that decisions need; `code` stands in where it has none."""
    return ApiStatus(code=integer(raw, "code") or code, reason=text(raw, "reason"), message=text(raw, "message"))
