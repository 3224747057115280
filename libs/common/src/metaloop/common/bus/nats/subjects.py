"""The subjects of the bus, and the name of its job stream. No other module makes one.

metaloop.job.<shard>.…           the job stream: one message for each key
metaloop.claim.<shard>           worker → watcher, a request: may I have this key, and what does its world look like?
metaloop.related.<shard>         worker → watcher, a request: what do these queries select, now and later?
metaloop.renew.<shard>           worker → watcher, a request: I still hold these leases
metaloop.outcome.<shard>         worker → watcher: the report of a finished sync
metaloop.done.<shard>.<lease>    server → watcher: the job that was finished under this lease is out of the stream
metaloop.held.<shard>            watcher → all workers: who holds what? Each answers with a `Renewal`
metaloop.resigned.<shard>        watcher → its standbys: the Lease of the shard is free
metaloop.presence.<shard>        watcher → watchers of its shard: I serve it, or am about to
metaloop.tenure.<controller>     watcher → watcher, a request: do you own this controller? Only its owner answers

Clusters that share a NATS server have a prefix each: with the prefix `east`, all subjects begin with `east.metaloop.`,
and the stream is called `east-JOBS`.
"""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote, unquote

from metaloop.common.job import ControllerId, JobKey
from metaloop.common.objects.resource import ResourceId

_ROOT: Final = "metaloop"
_STREAM: Final = "JOBS"
_PLAIN = re.compile(r"[A-Za-z0-9~:@+-][A-Za-z0-9_~:@+-]*")
"""What needs no escaping: nearly every name, and told apart in a tenth of the time that escaping takes."""


class Subjects:
    """The names that one cluster uses on its NATS server; `prefix` is a single token, or empty."""

    def __init__(self, prefix: str = "") -> None:
        self._root = f"{prefix}.{_ROOT}" if prefix else _ROOT
        self.stream = f"{prefix}-{_STREAM}" if prefix else _STREAM
        """The name of the job stream."""

    @property
    def all_jobs(self) -> str:
        """The jobs of all shards: what the stream stores."""
        return f"{self._root}.job.>"

    @property
    def held_in_any_shard(self) -> str:
        """Where watchers of any shard ask who holds what."""
        return f"{self._root}.held.*"

    def job(self, key: JobKey, shard: str) -> str:
        """`metaloop.job.<shard>.<kind>.<controller>.<resource>.<namespace>.<name>`, and `.<part>` if the key has one.

        The stream holds one message per subject: so it refuses a second job of a key.
        """
        controller = _jobs_of_controller(self._root, key.controller, key.resource, shard)
        parent = f"{controller}{subject_token(key.namespace)}.{subject_token(key.name)}"
        return f"{parent}.{subject_token(key.part)}" if key.part else parent

    def jobs_of(self, shard: str) -> str:
        """All jobs of a shard."""
        return f"{_of_shard(self._root, 'job', shard)}.>"

    def claim(self, shard: str) -> str:
        """Where workers ask for leases."""
        return _of_shard(self._root, "claim", shard)

    def related(self, shard: str) -> str:
        """Where workers ask for related objects."""
        return _of_shard(self._root, "related", shard)

    def renew(self, shard: str) -> str:
        """Where workers renew leases."""
        return _of_shard(self._root, "renew", shard)

    def report(self, shard: str) -> str:
        """Where workers report how a sync ended."""
        return _of_shard(self._root, "outcome", shard)

    def receipt(self, shard: str, lease: str) -> str:
        """Where the server's receipt for the job of `lease` goes; `*` as lease stands for all of them."""
        return f"{_of_shard(self._root, 'done', shard)}.{lease}"

    def held(self, shard: str) -> str:
        """Where a watcher asks who holds what."""
        return _of_shard(self._root, "held", shard)

    def resigned(self, shard: str) -> str:
        """Where a leader that gave its Lease back tells its standbys."""
        return _of_shard(self._root, "resigned", shard)

    def presence(self, shard: str) -> str:
        """Where watchers of a shard tell one another that they serve it."""
        return _of_shard(self._root, "presence", shard)

    def owner(self, controller: ControllerId) -> str:
        """Where the owner of a controller answers."""
        return f"{self._root}.tenure.{subject_token(controller.kind)}.{subject_token(controller.name)}"


def subject_token(text: str) -> str:
    """`text` as one token of a subject.

    Dots, spaces, wildcards and control characters are escaped as %XX; empty text is `_`.
    """
    if _PLAIN.fullmatch(text):
        return text
    return quote(text, safe=":@+-").replace(".", "%2E") if text else "_"


def lease_of(receipt_subject: str) -> str:
    """The lease that a receipt names."""
    return receipt_subject.rpartition(".")[2]


def shard_of(held_subject: str) -> str:
    """The shard whose watcher asks who holds what."""
    return unquote(held_subject.rpartition(".")[2])


@lru_cache(maxsize=1024)
def _jobs_of_controller(root: str, controller: ControllerId, resource: ResourceId, shard: str) -> str:
    return f"{root}.job." + "".join(f"{subject_token(part)}." for part in (shard, controller.kind, controller.name, str(resource)))


@lru_cache
def _of_shard(root: str, what: str, shard: str) -> str:
    return f"{root}.{what}.{subject_token(shard)}"
