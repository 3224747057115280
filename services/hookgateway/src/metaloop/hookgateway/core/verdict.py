"""The verdict on a webhook's answer, or on the error that took the place of one."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import ceil
from typing import Final

from metaloop.common.hooks.call import Accepted, NotModified, Rejected, Throttled
from metaloop.hookgateway.core.content_coding import plain_bytes
from metaloop.hookgateway.core.etag import CachedAnswer
from metaloop.hookgateway.core.redaction import NO_SECRETS, Secrets, excerpt
from metaloop.hookgateway.errors import HookError, PutOff, StatusUnexpected

MAX_DELAY_SECONDS: Final = 24 * 3600
"""The longest delay that a webhook may ask for: a typo in Retry-After must not delay a parent for years."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a webhook sent back. Nothing of it has been checked."""

    status: int
    body: bytes = b""
    """As received, still in `coding`. Only the beginning of it unless the status is 200."""

    coding: str = ""
    etag: str = ""
    retry_after: str = ""


def verdict_of_answer(
    answer: Answer, *, sent: CachedAnswer | None, now: datetime, limit: int, secrets: Secrets
) -> Accepted | NotModified | Throttled:
    """The verdict on an answer. Raises the HookError of an answer that is none.

    `sent` is the cached answer whose ETag was sent as If-None-Match. It is not looked up again, because another call
    for the same parent may have replaced it: a 304 refers to the tag that *this* call sent.
    """
    match answer.status:
        case 429:
            after_seconds = delay_seconds(answer.retry_after, now=now)
            return Throttled(after_seconds=after_seconds, message=_description(answer, secrets=secrets))
        case 200:
            return Accepted(body=plain_bytes(answer.body, coding=answer.coding, limit=limit))
        case 304 | 412 if sent is not None:
            return NotModified(body=sent.body)
        case _:
            raise StatusUnexpected(_description(answer, secrets=secrets))


def verdict_of_error(error: HookError, *, secrets: Secrets = NO_SECRETS) -> Throttled | Rejected:
    """The verdict that tells the reconciler about this error."""
    message = secrets.redacted(str(error))
    if isinstance(error, PutOff):
        return Throttled(after_seconds=error.after_seconds, fault=error.fault, message=message)
    return Rejected(fault=error.fault, message=message)


def counts_as_up(status: int) -> bool:
    """Whether the circuit breaker counts this status as a success.

    It counts a 500: the webhook fails for one parent and must go on serving the others. It does not count 502, 503 and
    504, which come from a proxy in front of a webhook that is not there.
    """
    return status not in {502, 503, 504}


_SECONDS = re.compile(r"[0-9]{1,12}")


def delay_seconds(retry_after: str, *, now: datetime) -> float | None:
    """The delay that a Retry-After header asks for, in seconds or as a date.

    None if it is missing, malformed, zero or past, which leaves the delay to the caller's backoff. Zero would be a hot
    loop, as in Metacontroller for a missing value.
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


def _description(answer: Answer, *, secrets: Secrets) -> str:
    text = excerpt(answer.body, coding=answer.coding, secrets=secrets)
    return f"webhook answered {answer.status}: {text}" if text else f"webhook answered {answer.status} with no body"
