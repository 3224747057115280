"""Whose a job stream is: decided by its configuration, and by that of a claim's worker."""

import pytest

from metaloop.common.bus.nats.stream_owner import (
    CLUSTER_KEY,
    claim_refusal,
    is_foreign,
    keeping_owner,
    refusal_of,
    refusing_cluster,
)
from metaloop.common.json import JsonObject, JsonValue


def config(cluster: str = "", **others: JsonValue) -> JsonObject:
    """A job stream of a cluster, or of none."""
    stream: JsonObject = {
        "name": "JOBS",
        "subjects": ["metaloop.job.>"],
        "retention": "workqueue",
        "max_msgs_per_subject": 1,
        "discard": "new",
        "discard_new_per_subject": True,
        "metadata": {CLUSTER_KEY: cluster} if cluster else {},
    }
    return {**stream, **others}


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (config("east"), config("east")),
        (config("east", subjects=["metaloop.job.v0.>"]), config("east")),
        (config(), config("east")),
        (config(), config()),
        (config("east"), config()),
    ],
    ids=["our own", "our own, configured otherwise", "of an older version", "of no cluster, and we know none", "we know none"],
)
def test_stream_is_used(found: JsonObject, wanted: JsonObject):
    assert refusal_of(found, wanted) == ""


def test_stream_of_another_cluster_is_refused_with_both_clusters_and_the_remedy():
    refusal = refusal_of(config("west"), config("east"))

    assert all(word in refusal for word in ("JOBS", "west", "east", "METALOOP_NATS_PREFIX"))


@pytest.mark.parametrize("difference", [{"subjects": ["jobs.>"]}, {"retention": "limits"}, {"max_msgs_per_subject": -1}], ids=str)
@pytest.mark.parametrize("cluster", ["east", ""])
def test_stream_that_is_no_job_stream_is_refused(difference: JsonObject, cluster: str):
    refusal = refusal_of({**config(), **difference}, config(cluster))

    assert "not a job stream of Metaloop" in refusal
    assert "METALOOP_NATS_PREFIX" in refusal


def test_metadata_of_the_server_itself_are_not_sent_back():
    found = config(metadata={"_nats.ver": "2.11", "team": "blue"})

    assert keeping_owner(config("east"), found)["metadata"] == {"team": "blue", CLUSTER_KEY: "east"}


def test_owner_of_a_stream_stays_where_we_know_no_cluster():
    assert keeping_owner(config(), config("west"))["metadata"] == {CLUSTER_KEY: "west"}


@pytest.mark.parametrize(
    ("worker", "watcher", "foreign"),
    [("east", "east", False), ("west", "east", True), ("", "east", False), ("west", "", False)],
    ids=["the same", "another", "unknown to the worker", "unknown to the watcher"],
)
def test_claim_is_foreign_where_both_clusters_are_known(worker: str, watcher: str, *, foreign: bool):
    assert is_foreign(worker, ours=watcher) is foreign


def test_refusal_of_a_claim_names_the_watchers_cluster():
    assert refusing_cluster(claim_refusal("east")) == "east"


def test_other_replies_refuse_no_cluster():
    assert refusing_cluster(b'{"state":"busy","retrySeconds":1}') == ""
