"""What of a webhook's text may be shown: a short excerpt, on one line, without anything confidential that we sent."""

import html
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, quote_plus

from metaloop.hookgateway.core.content_coding import plain_prefix

EXCERPT_LENGTH: Final = 512
"""Characters of a webhook's body that an error's message may carry: an Event's message holds 1,024."""

MASK: Final = "***"

_CREDENTIALS = re.compile(
    r"\b((?i:bearer)(?:\s+|%20))[^\s\"'<>,;]+"
    r"|\b((?i:basic|token)(?:\s+|%20))(?=[^\s\"'<>,;]*[A-Z0-9])[^\s\"'<>,;]{6,}"
)
"""An Authorization header's value in running text.

`basic` and `token` are also plain English words, so what follows them must look like a credential.
"""

_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True, slots=True)
class Secrets:
    """The strings to mask in what a webhook echoes, in every spelling in which a server may echo them."""

    spellings: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, values: Iterable[str]) -> "Secrets":
        """These values as they are and as JSON, HTML and URLs spell them.

        The longest first: one may contain another.
        """
        every = {spelling for value in values if value for spelling in _spellings(value)}
        return cls(tuple(sorted(every, key=len, reverse=True)))

    def redacted(self, text: str) -> str:
        """The text with each of the secrets masked."""
        for spelling in self.spellings:
            text = text.replace(spelling, MASK)
        return text

    @property
    def longest(self) -> int:
        """The length of the longest spelling: how far beyond a cut to look for a secret that it would cut in two."""
        return len(self.spellings[0]) if self.spellings else 0


NO_SECRETS: Final = Secrets()


def excerpt(body: bytes, *, coding: str, secrets: Secrets) -> str:
    """The beginning of a webhook's body for an error's message.

    It is redacted before it is cut, so no half of a secret is left.
    """
    enough = 4 * (EXCERPT_LENGTH + secrets.longest)
    text = plain_prefix(body, coding=coding, limit=enough).decode("utf-8", errors="replace")
    masked = _CREDENTIALS.sub(lambda found: f"{found[1] or found[2]}{MASK}", secrets.redacted(text))
    shown = _UNPRINTABLE.sub(" ", masked).strip()
    return shown if len(shown) <= EXCERPT_LENGTH else shown[:EXCERPT_LENGTH] + "…"


def _spellings(value: str) -> set[str]:
    as_json = json.dumps(value)[1:-1]
    return {value, as_json, as_json.replace("/", "\\/"), html.escape(value), quote(value, safe=""), quote(value), quote_plus(value)}
