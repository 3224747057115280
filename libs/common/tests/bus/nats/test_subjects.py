"""Subjects: each key has its own, whatever it is called."""

from hypothesis import given

from metaloop.common.bus.nats.subjects import held_subject, job_subject, shard_of
from metaloop.common.job import JobKey

from ...keys import keys, names


@given(keys)
def test_a_subject_is_made_of_plain_tokens(key: JobKey):
    tokens = job_subject(key, "0").split(".")

    assert len(tokens) == (9 if key.part else 8)  # metaloop.job.<shard>, five of the parent, and the part
    assert all(token.isascii() and token.isprintable() and not set(token) & set(" *>") for token in tokens)


@given(keys, keys)
def test_different_keys_have_different_subjects(one: JobKey, other: JobKey):
    assert (job_subject(one, "0") == job_subject(other, "0")) == (one == other or _empty_is_underscore(one, other))


def _empty_is_underscore(one: JobKey, other: JobKey) -> bool:
    """`_` is no valid name in Kubernetes, so it may stand for an empty one."""
    return [part or "_" for part in one.to_wire()] == [part or "_" for part in other.to_wire()]


@given(names)
def test_a_shard_is_read_from_its_subject(shard: str):
    assert shard_of(held_subject(shard)) == shard
