"""Subjects: each key has its own, whatever it is called."""

from hypothesis import given

from metaloop.common.bus.nats.subjects import Subjects, shard_of
from metaloop.common.job import JobKey

from ...keys import keys, names

SUBJECTS = Subjects()


@given(keys)
def test_a_subject_is_made_of_plain_tokens(key: JobKey):
    tokens = SUBJECTS.job(key, "0").split(".")

    assert len(tokens) == (9 if key.part else 8)  # metaloop.job.<shard>, five of the parent, and the part
    assert all(token.isascii() and token.isprintable() and not set(token) & set(" *>") for token in tokens)


@given(keys, keys)
def test_different_keys_have_different_subjects(one: JobKey, other: JobKey):
    assert (SUBJECTS.job(one, "0") == SUBJECTS.job(other, "0")) == (one == other or _empty_is_underscore(one, other))


def _empty_is_underscore(one: JobKey, other: JobKey) -> bool:
    """`_` is no valid name in Kubernetes, so it may stand for an empty one."""
    return [part or "_" for part in one.to_wire()] == [part or "_" for part in other.to_wire()]


@given(names)
def test_a_shard_is_read_from_its_subject(shard: str):
    assert shard_of(SUBJECTS.held(shard)) == shard


@given(keys)
def test_prefix_stands_before_the_same_subject(key: JobKey):
    assert Subjects("east").job(key, "0") == f"east.{SUBJECTS.job(key, '0')}"


def test_names_without_a_prefix_are_those_of_older_versions():
    assert (SUBJECTS.stream, SUBJECTS.all_jobs, SUBJECTS.claim("0")) == ("JOBS", "metaloop.job.>", "metaloop.claim.0")


def test_stream_has_the_prefix_in_its_name():
    assert Subjects("east").stream == "east-JOBS"
