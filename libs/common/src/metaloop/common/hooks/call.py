"""The call from a reconciler to the gateway: `POST /v2/call`, its headers, and the verdict in the answer.

The bodies are the webhook's own JSON, passed through as bytes in both directions. The target is in headers. A call is
made under a lease: its body comes in frames, a line with the length before each, and a length of zero at the end. Then
lines follow until the answer: each says how long the lease lasts from then on. A call without a lease, as of a dry run,
is `POST /v1/call`, with nothing but the body. A status
other than 200 is about the call to the gateway itself (401 wrong token, 422 malformed target, 503 draining); 200
carries one of the four verdicts.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from metaloop.common.errors import Unavailable
from metaloop.common.faults import AnyFault, Fault, fault_of
from metaloop.common.http.body import Body, blocks_of
from metaloop.common.json import JSONDecodeError, JsonObject, JsonValue, dumps, loads

PATH = "/v1/call"
LEASED_PATH = "/v2/call"
TARGET_HEADER = "X-Metaloop-Target"
PARENT_HEADER = "X-Metaloop-Parent"
REVISION_HEADER = "X-Metaloop-Revision"
VERDICT_HEADER = "X-Metaloop-Verdict"

TURN_SECONDS: Final = 30.0
"""How long a call waits in the gateway at most for its turn to connect, before it is put off."""
SLACK_SECONDS: Final = 45.0
"""How much longer than its webhook's timeout a call may take: it waits for its turn and for credentials first. A
gateway that has not answered then does not work."""

ACCEPTED = "accepted"
NOT_MODIFIED = "not-modified"
THROTTLED = "throttled"
REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The webhook answered 200 with this body, which is not validated yet."""

    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NotModified:
    """The webhook confirmed its former answer (304 or 412), which had this body."""

    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled:
    """The webhook, or the gateway on its behalf, asks to wait.

    This is not a failure, but a status may say why a parent waits.
    """

    after_seconds: float | None
    """How long; None if the webhook did not say."""

    fault: AnyFault = Fault.WEBHOOK_BUSY
    message: str = "the webhook asks to wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """No usable answer. Whether and when the call is retried follows from the fault."""

    fault: AnyFault
    message: str
    """A sentence without secrets."""


Verdict: TypeAlias = Accepted | NotModified | Throttled | Rejected


END_OF_BODY: Final = b"0\n"
LONGEST_LINE_BYTES: Final = 32
_LENGTH: Final = re.compile(rb"[0-9]{1,12}")
_RENEWED: Final = re.compile(rb"-?[0-9]{1,9}\.[0-9]{3}")


def frames_of(body: Body) -> Body:
    """The body of a call under a lease, up to its end, as it is sent."""
    return (_frame(body) + END_OF_BODY) if isinstance(body, bytes) else _Frames(body)


@dataclass(frozen=True, slots=True)
class _Frames:
    """The frames of a body that is made while it is sent."""

    pieces: Iterable[bytes]

    def __iter__(self) -> Iterator[bytes]:
        yield from map(_frame, blocks_of(self.pieces))
        yield END_OF_BODY


def _frame(piece: bytes) -> bytes:
    return b"%d\n%s" % (len(piece), piece) if piece else b""


def length_from_wire(line: bytes) -> int:
    """The length of a frame from its line, without the line's end. Raises ValueError for anything else."""
    if not _LENGTH.fullmatch(line):
        raise ValueError(f"no length of a frame: {line[:40]!r}")
    return int(line)


def renewed_to_wire(seconds: float) -> bytes:
    """The line after the body which says that the lease lasts for so long from now on."""
    return b"%.3f\n" % seconds


def renewed_from_wire(line: bytes) -> float:
    """The seconds of a line, without its end. Raises ValueError for anything else."""
    if not _RENEWED.fullmatch(line):
        raise ValueError(f"no length of a lease: {line[:40]!r}")
    return float(line)


def target_header(target: JsonObject) -> str:
    """The value of `TARGET_HEADER`: ASCII JSON of `{controller: {kind, name, uid}, hook, webhook, endpointConfigs}`."""
    text = dumps(target).decode()
    return text if text.isascii() else "".join(char if char < "\x80" else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[i] << 8 | units[i + 1]:04x}" for i in range(0, len(units), 2))


def verdict_to_wire(verdict: Verdict) -> tuple[str, bytes]:
    """The value of `VERDICT_HEADER` and the body for `verdict`."""
    match verdict:
        case Accepted(body=body):
            return ACCEPTED, body
        case NotModified(body=body):
            return NOT_MODIFIED, body
        case Throttled(after_seconds=after, fault=fault, message=message):
            return THROTTLED, dumps({"afterSeconds": after, "fault": fault.wire, "message": message})
        case Rejected(fault=fault, message=message):
            return REJECTED, dumps({"fault": fault.wire, "message": message})


def verdict_from_wire(name: str, body: bytes) -> Verdict:
    """The verdict from a value of `VERDICT_HEADER` and a body.

    Raises Unavailable if they are not a verdict: something else answered on that port.
    """
    if name == ACCEPTED:
        return Accepted(body=body)
    if name == NOT_MODIFIED:
        return NotModified(body=body)
    if name in {THROTTLED, REJECTED}:
        return _explained(name, body)
    raise _no_verdict(name)


def _explained(name: str, body: bytes) -> Throttled | Rejected:
    try:
        raw = loads(body)
        fault, message = fault_of(str(raw["fault"])), str(raw["message"])
        if name == THROTTLED:
            return Throttled(after_seconds=_seconds(raw["afterSeconds"]), fault=fault, message=message)
    except (JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise _no_verdict(name) from error
    return Rejected(fault=fault, message=message)


def _seconds(raw: JsonValue) -> float | None:
    # Any other type raises TypeError or ValueError, which the caller expects.
    return None if raw is None else float(raw)  # pyright: ignore[reportArgumentType]


def _no_verdict(name: str) -> Unavailable:
    return Unavailable(f"the hook gateway answered without a verdict ({name[:40]!r})")
