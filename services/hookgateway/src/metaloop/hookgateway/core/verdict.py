"""A webhook's status, headers and body to `Accepted | NotModified | Throttled | Rejected`."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import ceil
from typing import Final

from metaloop.common.hooks.call import Accepted, NotModified, Rejected, Throttled
from metaloop.hookgateway.core.clean import NO_SECRETS, Secrets, excerpt
from metaloop.hookgateway.core.coding import plain_bytes
from metaloop.hookgateway.core.etag import Remembered
from metaloop.hookgateway.errors import HookError, PutOff, StatusUnexpected

MAX_DELAY_SECONDS: Final = 24 * 3600
"""The longest delay that a webhook may ask for: a typing error in Retry-After must not park a parent for years."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a webhook sent back, nothing of it believed yet."""

    status: int
    body: bytes = b""
    """As it came over the wire: still in `coding`, and cut to an excerpt unless the status is 200."""

    coding: str = ""
    etag: str = ""
    retry_after: str = ""


def judge(answer: Answer, *, sent: Remembered | None, now: datetime, limit: int, secrets: Secrets) -> Accepted | NotModified | Throttled:
    """The verdict on an answer, by its status; raises the HookError of one that is no answer.

    `sent` is the remembered answer whose ETag went out as If-None-Match. It is handed in and not looked up again, because a call for the
    same parent may have replaced it meanwhile: a 304 speaks of the tag that *this* call sent.
    """
    match answer.status:
        case 429:
            after_seconds = delay_seconds(answer.retry_after, now=now)
            return Throttled(after_seconds=after_seconds, message=_complaint(answer, secrets=secrets))
        case 200:
            return Accepted(body=plain_bytes(answer.body, coding=answer.coding, limit=limit))
        case 304 | 412 if sent is not None:
            return NotModified(body=sent.body)
        case _:
            raise StatusUnexpected(_complaint(answer, secrets=secrets))


def verdict_of(error: HookError, *, secrets: Secrets = NO_SECRETS) -> Throttled | Rejected:
    """The verdict that tells the reconciler of this error."""
    message = secrets.hidden_in(str(error))
    if isinstance(error, PutOff):
        return Throttled(after_seconds=error.after_seconds, fault=error.fault, message=message)
    return Rejected(fault=error.fault, message=message)


def is_sign_of_life(status: int) -> bool:
    """Whether a webhook that answers with this status is up, for the circuit breaker.

    A 500 is: that webhook fails for one parent and must go on serving the rest. 502, 503 and 504 come from whatever stands in front of a
    webhook that is not there.
    """
    return status not in {502, 503, 504}


_SECONDS = re.compile(r"[0-9]{1,12}")


def delay_seconds(retry_after: str, *, now: datetime) -> float | None:
    """How long a Retry-After, in seconds or as a date, asks to wait: None when it is missing, garbage, zero or past.

    None leaves the delay to the caller's backoff. A zero would be a hot loop, which is what the original makes of a missing value.
    """
    wanted = int(retry_after) if _SECONDS.fullmatch(retry_after) else _seconds_until(retry_after, now=now)
    return float(min(wanted, MAX_DELAY_SECONDS)) if wanted > 0 else None


def _seconds_until(date: str, *, now: datetime) -> int:
    try:
        when = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return 0
    in_utc = when.replace(tzinfo=UTC) if when.tzinfo is None else when
    return ceil((in_utc - now).total_seconds())


def _complaint(answer: Answer, *, secrets: Secrets) -> str:
    text = excerpt(answer.body, coding=answer.coding, secrets=secrets)
    return f"webhook answered {answer.status}: {text}" if text else f"webhook answered {answer.status} with no body"
