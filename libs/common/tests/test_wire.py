"""Wire forms between services are lossless."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.faults import AnyFault, Fault, UnknownFault
from metaloop.common.job import ControllerId, Job, JobKey
from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.observation import (
    LARGE_BYTES,
    Busy,
    CachedGrant,
    CachedGroup,
    CachedObservation,
    CachedRelated,
    Gone,
    Granted,
    LeaseTerms,
    Observation,
    ReplyReader,
    reply_from_bytes,
    reply_to_bytes,
    reply_to_pieces,
    terms_in,
)
from metaloop.common.report import SyncReport, Write
from metaloop.common.testing.builders import cached_observation, job_key

from .keys import keys, names

CONFIGMAPS = ResourceInfo(api_version="v1", resource="configmaps", kind="ConfigMap", namespaced=True)


@given(keys, names)
def test_a_job_survives_the_wire(key: JobKey, reason: str):
    job = Job(key=key, shard="0", reason=reason, traceparent="00-a-b-01")

    assert Job.from_bytes(job.to_bytes()) == job


def test_a_key_without_a_part_is_six_strings_on_the_wire():
    key = JobKey(ControllerId("CompositeController", "c"), CONFIGMAPS.id, "n", "p")

    assert key.to_wire() == ["CompositeController", "c", "v1", "configmaps", "n", "p"]


@pytest.mark.parametrize("parts", [["a"] * 5, ["a"] * 8])
def test_a_key_of_any_other_length_is_refused(parts: list[str]):
    with pytest.raises(ValueError, match="unpack"):
        JobKey.from_wire(parts)


def test_a_granted_claim_embeds_cached_bytes_unparsed():
    observation = CachedObservation(
        controller=dumps({"kind": "CompositeController"}),
        parent_resource=ResourceInfo(api_version="ex.io/v1", resource="hellos", kind="Hello", namespaced=True, has_status=True),
        parent=dumps({"metadata": {"name": "p"}}),
        children=[CachedGroup(resource=CONFIGMAPS, objects=[dumps({"metadata": {"name": "c"}})])],
    )

    reply = reply_from_bytes(reply_to_bytes(CachedGrant(observation=observation, lease="1-7", lease_seconds=5.0)))

    assert isinstance(reply, Granted)
    assert (reply.lease, reply.lease_seconds) == ("1-7", 5.0)
    assert reply.observation.parent == {"metadata": {"name": "p"}}
    assert reply.observation.children[0].info == CONFIGMAPS
    assert reply.observation.children[0].objects == [{"metadata": {"name": "c"}}]


@pytest.mark.parametrize("seconds", [None, 1.5])
def test_a_grant_says_how_long_ago_the_change_was_seen(seconds: float | None):
    observation = CachedObservation(controller=b"{}", parent_resource=CONFIGMAPS, parent=b"{}", children=[])
    grant = CachedGrant(observation=observation, lease="1-7", lease_seconds=5.0, changed_seconds_ago=seconds)

    reply = reply_from_bytes(reply_to_bytes(grant))

    assert isinstance(reply, Granted)
    assert reply.changed_seconds_ago == seconds


def test_a_grant_of_an_older_watcher_does_not_say_when_something_changed():
    observation = CachedObservation(controller=b"{}", parent_resource=CONFIGMAPS, parent=b"{}", children=[])
    wire = loads(reply_to_bytes(CachedGrant(observation=observation, lease="1-7", lease_seconds=5.0)))
    del wire["changedSecondsAgo"]

    reply = reply_from_bytes(dumps(wire))

    assert isinstance(reply, Granted)
    assert reply.changed_seconds_ago is None


def test_an_observation_says_which_part_was_claimed():
    observation = CachedObservation(controller=b"{}", parent_resource=CONFIGMAPS, parent=b"{}", children=[], part="uid-1")

    reply = reply_from_bytes(reply_to_bytes(CachedGrant(observation=observation, lease="1-7", lease_seconds=5.0)))

    assert isinstance(reply, Granted)
    assert reply.observation.part == "uid-1"


@pytest.mark.parametrize("summary", [None, {"inputs": {"pods": {"total": 3}}}])
def test_what_was_counted_of_the_parts_of_a_parent_survives_the_wire(summary: JsonObject | None):
    info = ResourceInfo(api_version="ex.io/v1", resource="hellos", kind="Hello", namespaced=True)
    observation = CachedObservation(controller=b"{}", parent_resource=info, parent=b"{}", children=[], summary=summary)

    reply = reply_from_bytes(reply_to_bytes(CachedGrant(observation=observation, lease="1-7", lease_seconds=5.0)))

    assert isinstance(reply, Granted)
    assert reply.observation.summary == summary


def test_what_we_own_of_a_child_travels_beside_it():
    group = CachedGroup(resource=CONFIGMAPS, objects=[dumps({"metadata": {"name": "c"}})], managed={"uid-c": dumps({"fieldsV1": {}})})
    info = ResourceInfo(api_version="ex.io/v1", resource="hellos", kind="Hello", namespaced=True)
    observation = CachedObservation(controller=b"{}", parent_resource=info, parent=b"{}", children=[group])

    reply = reply_from_bytes(reply_to_bytes(CachedGrant(observation=observation, lease="1-7", lease_seconds=5.0)))

    assert isinstance(reply, Granted)
    assert reply.observation.children[0].objects == [{"metadata": {"name": "c"}}]
    assert reply.observation.children[0].managed == {"uid-c": {"fieldsV1": {}}}


def objects_of(name: str, *, count: int, size: int = 0) -> list[bytes]:
    """Objects of at least `size` bytes, with text that could be mistaken for the frame of a reply."""
    return [dumps({"metadata": {"name": f"{name}-{index}"}, "text": "},\n{[\n]" + "x" * size}) for index in range(count)]


def large_grant(*, children: int = 3, size: int = LARGE_BYTES) -> CachedGrant:
    """A grant with objects of each sort, whose children are so large."""
    groups = [CachedGroup(resource=CONFIGMAPS, objects=objects_of("c", count=children, size=size), managed={"u": b'{"a":1}'})]
    observation = CachedObservation(
        controller=b'{"kind":"C"}',
        parent_resource=CONFIGMAPS,
        parent=b'{"metadata":{"name":"p"}}',
        children=[*groups, CachedGroup(resource=CONFIGMAPS, objects=[])],
        revisions=objects_of("r", count=2),
        inputs=[CachedGroup(resource=CONFIGMAPS, objects=objects_of("i", count=1))],
        related=CachedRelated(fingerprint="f", groups=[CachedGroup(resource=CONFIGMAPS, objects=objects_of("x", count=2))]),
    )
    return CachedGrant(observation=observation, lease="1-7", lease_seconds=5.0)


def read_in_parts(wire: bytes, size: int) -> Observation:
    reader = ReplyReader()
    for start in range(0, len(wire), size):
        reader.feed(wire[start : start + size])
    reply = reader.reply()
    assert isinstance(reply, Granted)
    return reply.observation


@pytest.mark.parametrize("size", [1, 7, 4096, 10**9])
def test_large_grant_is_read_from_parts_of_any_size(size: int):
    grant = large_grant(children=300, size=1_000)

    observation = read_in_parts(reply_to_bytes(grant), size)

    shown = grant.observation
    assert [group.objects for group in observation.children] == [[*map(loads, group.objects)] for group in shown.children]
    assert observation.children[0].managed == {"u": {"a": 1}}
    assert observation.revisions == [*map(loads, shown.revisions)]
    assert observation.inputs[0].objects == [*map(loads, shown.inputs[0].objects)]
    assert observation.related is not None
    assert [group.objects for group in observation.related.groups] == [[*map(loads, objects_of("x", count=2))]]


def test_pieces_of_a_large_grant_are_the_cached_bytes_themselves():
    grant = large_grant()

    pieces = {id(piece) for piece in reply_to_pieces(grant)}

    assert {id(item) for group in grant.observation.children for item in group.objects} <= pieces


def test_large_grant_is_json_for_a_reader_that_knows_no_lines():
    grant = large_grant()

    raw = loads(reply_to_bytes(grant))

    assert raw["children"][0]["objects"] == [*map(loads, grant.observation.children[0].objects)]
    assert raw["revisions"] == [*map(loads, grant.observation.revisions)]


def test_large_grant_without_lines_is_read_like_any_other():
    """A watcher of an older version sends it."""
    wire = dumps(loads(reply_to_bytes(large_grant())))

    observation = read_in_parts(wire, 4096)

    assert [len(group.objects) for group in observation.children] == [3, 0]


def test_small_grant_is_one_piece():
    assert len(reply_to_pieces(large_grant(children=2, size=10))) == 1


@pytest.mark.parametrize("damage", [b"", b'{"state":"granted"}', b'{"state":"unheard of"}', b"[\n{]"])
def test_reply_that_can_not_be_read_is_an_error(damage: bytes):
    with pytest.raises((KeyError, TypeError, ValueError)):
        reply_from_bytes(damage)


@pytest.mark.parametrize("refusal", [Busy(retry_seconds=1.5), Gone(reason="parent deleted", lease="1-2")])
def test_a_refused_claim_survives_the_wire(refusal: Busy | Gone):
    assert reply_from_bytes(reply_to_bytes(refusal)) == refusal


@given(keys, st.none() | st.floats(0, 1e6), st.text(), st.none() | st.sampled_from(Fault) | st.just(UnknownFault("Invented")))
def test_a_report_survives_the_wire(key: JobKey, after: float | None, message: str, fault: AnyFault | None):
    report = SyncReport(
        key=key,
        lease="1-1",
        result="throttled",
        after_seconds=after,
        resync_after_seconds=after,
        fault=fault,
        message=message,
        writes=[Write(resource=CONFIGMAPS.id, namespace="n", name="c", uid="u", resource_version="12", watched="l")],
        rivals=(key.part,),
        actions={"CreateChild": 2},
        hook_seconds={"sync": 0.25},
        trace_id=message,
    )

    assert SyncReport.from_bytes(report.to_bytes()) == report


def test_what_explains_a_sync_is_left_out_of_a_report_where_there_is_nothing_of_it():
    report = SyncReport(key=job_key(), lease="1-1", result="done", writes=[])

    assert not {"actions", "hookSeconds", "traceId"}.intersection(loads(report.to_bytes()))
    assert SyncReport.from_bytes(report.to_bytes()) == report


@pytest.mark.parametrize("seconds", [5.0, 0.5, 15, 1e-7])
def test_terms_of_a_lease_stand_at_the_beginning_of_a_grant(seconds: float):
    wire = reply_to_bytes(CachedGrant(observation=cached_observation(), lease="1-7", lease_seconds=seconds))

    assert terms_in(wire[:100]) == LeaseTerms(lease="1-7", seconds=seconds)


@pytest.mark.parametrize("refusal", [Busy(retry_seconds=1.5), Gone(reason="deleted", lease="1-2")])
def test_refusal_has_no_terms(refusal: Busy | Gone):
    assert terms_in(reply_to_bytes(refusal)) is None
