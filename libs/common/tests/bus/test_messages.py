"""What watchers and workers say to one another survives the wire, and what is something else is refused."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.bus.messages import ClaimRequest, HeldLease, Presence, RelatedRequest, Renewal
from metaloop.common.job import Job, JobKey, UnknownVersion
from metaloop.common.json import JsonValue, dumps
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import Requirement, Selector
from metaloop.common.related_query import InNamespace, InNamespacesWith, RelatedQuery
from metaloop.common.report import UNKNOWN_VERSION, SyncReport, Write
from metaloop.common.testing.builders import CHILDREN, job_key, sync_report, write

from ..keys import keys, names

words = st.text(max_size=8)
slots = st.integers(0, 1000)
leases = st.builds(HeldLease, keys, words, st.sampled_from([0.0, 5.0, 7.5]))
RED = Selector((Requirement("color", "In", ("red",)),))
queries = st.builds(
    RelatedQuery,
    resource=st.just(CHILDREN),
    where=st.builds(InNamespace, words) | st.just(InNamespacesWith(RED)),
    labels=st.sampled_from([Selector(), RED]),
    names=st.frozensets(words, max_size=3),
)


@given(st.builds(ClaimRequest, key=keys, worker=words, free_slots=slots))
def test_a_claim_survives_the_wire(request: ClaimRequest):
    assert ClaimRequest.from_bytes(request.to_bytes()) == request


def test_a_lease_of_an_older_worker_has_no_known_length():
    key = job_key()

    assert HeldLease.from_wire((key.to_wire(), "e-1")) == HeldLease(key, "e-1", 0.0)


@given(st.builds(RelatedRequest, key=keys, lease=words, fingerprint=words, queries=st.lists(queries, max_size=3)))
def test_a_subscription_survives_the_wire(request: RelatedRequest):
    assert RelatedRequest.from_bytes(request.to_bytes()) == request


@given(st.builds(Renewal, worker=words, free_slots=slots, leases=st.lists(leases, max_size=5)))
def test_a_heartbeat_survives_the_wire(renewal: Renewal):
    assert Renewal.from_bytes(renewal.to_bytes()) == renewal


READERS: dict[str, Callable[[bytes], object]] = {
    "claim": ClaimRequest.from_bytes,
    "related": RelatedRequest.from_bytes,
    "renewal": Renewal.from_bytes,
    "presence": Presence.from_bytes,
    "job": Job.from_bytes,
    "report": SyncReport.from_bytes,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize("wire", [b"", b"nonsense", b"null", b"[]", b"{}", b"[1]", b"[[],2,3,4,5]", b"\xff"])
def test_bytes_of_something_else_are_refused(read: Callable[[bytes], object], wire: bytes):
    with pytest.raises((ValueError, KeyError, TypeError)):
        read(wire)


@pytest.mark.parametrize(
    ("read", "wire"),
    [
        (Job.from_bytes, {"version": 2, "jobs": []}),
        (ClaimRequest.from_bytes, [{"of": "another form"}, "w", 1, "", 2]),
        (SyncReport.from_bytes, {"version": 2}),
    ],
    ids=["job", "claim", "report"],
)
def test_message_of_another_version_is_refused_and_not_read(read: Callable[[bytes], object], wire: JsonValue):
    with pytest.raises(UnknownVersion, match="a message of version 2"):
        read(dumps(wire))


def test_message_without_a_version_is_of_the_first():
    job = {"key": job_key().to_wire(), "shard": "0", "reason": "r", "traceparent": ""}

    assert Job.from_bytes(dumps(job)).key == job_key()
    assert ClaimRequest.from_bytes(dumps([job_key().to_wire(), "w", 1, "c"])).cluster == "c"


def test_presence_of_a_rank_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="PresenceRank"):
        Presence.from_bytes(b'[7,"watcher"]')


@given(keys, names)
def test_parent_of_a_part_is_the_same_key_without_it(key: JobKey, part: str):
    of_part = key._replace(part=part)

    assert of_part.parent == key._replace(part="")
    assert of_part.parent.parent == of_part.parent


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (job_key("a"), "CompositeController/things things default/a"),
        (job_key("a", namespace=""), "CompositeController/things things a"),
        (job_key("a")._replace(part="uid-1"), "CompositeController/things things default/a#uid-1"),
    ],
)
def test_key_is_shown_with_controller_parent_and_part(key: JobKey, shown: str):
    assert str(key) == shown


@pytest.mark.parametrize(
    ("version", "is_deletion", "is_uncertain"), [("", True, False), ("12", False, False), (UNKNOWN_VERSION, False, True)]
)
def test_write_says_whether_it_deleted_and_whether_it_is_certain(version: str, *, is_deletion: bool, is_uncertain: bool):
    made = Write(resource=ResourceId("v1", "pods"), namespace="n", name="a", uid="u", resource_version=version)

    assert (made.is_deletion, made.is_uncertain) == (is_deletion, is_uncertain)


def test_report_of_a_peer_that_knows_no_rivals_is_read():
    report = sync_report(job_key(), "1-1", writes=[write()])
    older = report.to_bytes().replace(b',"rivals":[]', b"")

    assert b"rivals" not in older
    assert SyncReport.from_bytes(older) == report
