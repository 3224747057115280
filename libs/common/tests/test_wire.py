"""Wire forms between services are lossless."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.faults import AnyFault, Fault, UnknownFault
from metaloop.common.job import ControllerId, Job, JobKey
from metaloop.common.json import JsonObject, dumps
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.observation import (
    Busy,
    CachedGrant,
    CachedGroup,
    CachedObservation,
    Gone,
    Granted,
    LeaseTerms,
    reply_from_bytes,
    reply_to_bytes,
    terms_in,
)
from metaloop.common.report import SyncReport, Write
from metaloop.common.testing.builders import cached_observation

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
        writes=[Write(resource=CONFIGMAPS.id, namespace="n", name="c", uid="u", resource_version="12")],
        rivals=(key.part,),
    )

    assert SyncReport.from_bytes(report.to_bytes()) == report


@pytest.mark.parametrize("seconds", [5.0, 0.5, 15, 1e-7])
def test_terms_of_a_lease_stand_at_the_beginning_of_a_grant(seconds: float):
    wire = reply_to_bytes(CachedGrant(observation=cached_observation(), lease="1-7", lease_seconds=seconds))

    assert terms_in(wire[:100]) == LeaseTerms(lease="1-7", seconds=seconds)


@pytest.mark.parametrize("refusal", [Busy(retry_seconds=1.5), Gone(reason="deleted", lease="1-2")])
def test_refusal_has_no_terms(refusal: Busy | Gone):
    assert terms_in(reply_to_bytes(refusal)) is None
