"""The subjects of the bus. No other module builds one.

metaloop.job.<shard>.…           the job stream: one message for each key
metaloop.claim.<shard>           worker → watcher, a request: may I have this key, and what does its world look like?
metaloop.related.<shard>         worker → watcher, a request: what do these queries select, now and later?
metaloop.renew.<shard>           worker → watcher, a request: I still hold these leases
metaloop.outcome.<shard>         worker → watcher: the report of a finished sync
metaloop.done.<shard>.<lease>    server → watcher: the job that was finished under this lease is out of the stream
metaloop.held.<shard>            watcher → all workers: who holds what? Each answers with a `Renewal`
metaloop.resigned.<shard>        watcher → its standbys: the Lease of the shard is free
metaloop.tenure.<controller>     watcher → watcher, a request: do you own this controller? Only its owner answers
"""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote, unquote

from metaloop.common.job import ControllerId, JobKey
from metaloop.common.objects.resource import ResourceId

ALL_JOBS: Final = "metaloop.job.>"
HELD_IN_ANY_SHARD: Final = "metaloop.held.*"

_PLAIN = re.compile(r"[A-Za-z0-9~:@+-][A-Za-z0-9_~:@+-]*")
"""What needs no escaping: nearly every name, and told apart in a tenth of the time that escaping takes."""


def subject_token(text: str) -> str:
    """`text` as one token of a subject.

    Dots, spaces, wildcards and control characters are escaped as %XX; empty text is `_`.
    """
    if _PLAIN.fullmatch(text):
        return text
    return quote(text, safe=":@+-").replace(".", "%2E") if text else "_"


def job_subject(key: JobKey, shard: str) -> str:
    """`metaloop.job.<shard>.<kind>.<controller>.<resource>.<namespace>.<name>`, and `.<part>` where the key has one.

    The stream holds one message per subject: so it refuses a second job of a key.
    """
    parent = f"{_job_prefix(key.controller, key.resource, shard)}{subject_token(key.namespace)}.{subject_token(key.name)}"
    return f"{parent}.{subject_token(key.part)}" if key.part else parent


@lru_cache(maxsize=1024)
def _job_prefix(controller: ControllerId, resource: ResourceId, shard: str) -> str:
    return "metaloop.job." + "".join(f"{subject_token(part)}." for part in (shard, controller.kind, controller.name, str(resource)))


def jobs_of(shard: str) -> str:
    """All jobs of a shard."""
    return f"metaloop.job.{subject_token(shard)}.>"


@lru_cache
def claim_subject(shard: str) -> str:
    """Where workers ask for leases."""
    return f"metaloop.claim.{subject_token(shard)}"


@lru_cache
def related_subject(shard: str) -> str:
    """Where workers ask for related objects."""
    return f"metaloop.related.{subject_token(shard)}"


@lru_cache
def renew_subject(shard: str) -> str:
    """Where workers renew leases."""
    return f"metaloop.renew.{subject_token(shard)}"


@lru_cache
def report_subject(shard: str) -> str:
    """Where workers report how a sync ended."""
    return f"metaloop.outcome.{subject_token(shard)}"


def receipt_subject(shard: str, lease: str) -> str:
    """Where the server's receipt for the job of `lease` goes; `*` as lease stands for all of them."""
    return f"{_receipt_prefix(shard)}{lease}"


@lru_cache
def _receipt_prefix(shard: str) -> str:
    return f"metaloop.done.{subject_token(shard)}."


def lease_of(receipt_subject: str) -> str:
    """The lease that a receipt names."""
    return receipt_subject.rpartition(".")[2]


def held_subject(shard: str) -> str:
    """Where a watcher asks who holds what."""
    return f"metaloop.held.{subject_token(shard)}"


def shard_of(held_subject: str) -> str:
    """The shard whose watcher asks who holds what."""
    return unquote(held_subject.rpartition(".")[2])


def resigned_subject(shard: str) -> str:
    """Where a leader that gave its Lease back tells its standbys."""
    return f"metaloop.resigned.{subject_token(shard)}"


def owner_subject(controller: ControllerId) -> str:
    """Where the owner of a controller answers."""
    return f"metaloop.tenure.{subject_token(controller.kind)}.{subject_token(controller.name)}"
