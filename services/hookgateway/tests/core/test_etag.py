"""Which answers are remembered, for how long, and in how much memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from metaloop.hookgateway.core.etag import MAX_TAG_LENGTH, OVERHEAD_BYTES, EtagCache, EtagPolicy, Question

QUESTION = Question("controller", "sync", "http://hook/sync", "parent-1", "")
FOR_EVER = EtagPolicy()


def cache_with(*, etag: str = '"v1"', policy: EtagPolicy = FOR_EVER, capacity_bytes: int = 10_000) -> EtagCache:
    cache = EtagCache(capacity_bytes)
    cache.remember(QUESTION, etag=etag, body=b"{}", policy=policy, now=0.0)
    return cache


def test_answer_without_timeout_is_remembered_for_ever():
    remembered = cache_with().answer_to(QUESTION, now=1e9)

    assert remembered is not None
    assert (remembered.etag, remembered.body) == ('"v1"', b"{}")


@pytest.mark.parametrize(
    "other",
    [
        QUESTION._replace(controller="another"),
        QUESTION._replace(hook="finalize"),
        QUESTION._replace(url="http://elsewhere/sync"),
        QUESTION._replace(parent_uid="parent-2"),
        QUESTION._replace(revision="revision-2"),
    ],
)
def test_answer_stands_in_for_its_own_question_only(other: Question):
    assert cache_with().answer_to(other, now=0.0) is None


def test_answer_past_its_timeout_is_not_used_though_not_collected_yet():
    cache = cache_with(policy=EtagPolicy(timeout_seconds=10, cleanup_seconds=60))

    assert cache.answer_to(QUESTION, now=9.9) is not None
    assert cache.answer_to(QUESTION, now=10.0) is None
    assert len(cache) == 1


def test_answer_is_collected_one_cleanup_interval_past_its_timeout():
    cache = cache_with(policy=EtagPolicy(timeout_seconds=10, cleanup_seconds=60))

    cache.collect(now=69.9)
    assert len(cache) == 1

    cache.collect(now=70.0)
    assert len(cache) == 0
    assert cache.size_bytes == 0


def test_timeout_without_cleanup_interval_is_valid():
    """The original fails on it."""
    cache = cache_with(policy=EtagPolicy(timeout_seconds=10))

    cache.collect(now=10.0)

    assert len(cache) == 0


def test_cleanup_interval_without_timeout_collects_nothing():
    cache = cache_with(policy=EtagPolicy(cleanup_seconds=1))

    cache.collect(now=1e9)

    assert len(cache) == 1


def test_newer_answer_is_not_collected_in_the_turn_of_the_one_it_replaced():
    policy = EtagPolicy(timeout_seconds=10)
    cache = cache_with(policy=policy)
    cache.remember(QUESTION, etag='"v2"', body=b"{}", policy=policy, now=9.0)

    cache.collect(now=10.0)

    assert cache.answer_to(QUESTION, now=10.0) is not None


@pytest.mark.parametrize("etag", ["", "x" * (MAX_TAG_LENGTH + 1)])
def test_answer_without_usable_tag_forgets_the_one_before(etag: str):
    cache = cache_with()

    cache.remember(QUESTION, etag=etag, body=b"{}", policy=FOR_EVER, now=1.0)

    assert cache.answer_to(QUESTION, now=1.0) is None


def test_least_recently_used_answer_goes_first():
    entry = OVERHEAD_BYTES + 100
    cache = EtagCache(3 * entry)
    questions = [QUESTION._replace(parent_uid=f"parent-{number}") for number in range(4)]
    for question in questions[:3]:
        cache.remember(question, etag='"v"', body=b"x", policy=FOR_EVER, now=0.0)
    cache.answer_to(questions[0], now=1.0)

    cache.remember(questions[3], etag='"v"', body=b"x" * 50, policy=FOR_EVER, now=2.0)

    assert [cache.answer_to(question, now=3.0) is not None for question in questions] == [True, False, True, True]


def test_answer_larger_than_the_cache_is_not_remembered_and_drives_nobody_out():
    cache = cache_with(capacity_bytes=1000)

    cache.remember(QUESTION._replace(parent_uid="large"), etag='"v"', body=b"x" * 1000, policy=FOR_EVER, now=0.0)

    assert len(cache) == 1


class AnyUse(RuleBasedStateMachine):
    """Whatever is done with a cache, it holds no more than it may."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = EtagCache(3000)
        self.now = 0.0

    @rule(
        parent=st.sampled_from("abcdef"),
        size=st.integers(0, 2000),
        timeout=st.none() | st.integers(1, 5),
        etag=st.sampled_from(["", '"v"']),
    )
    def remember(self, parent: str, size: int, timeout: int | None, etag: str):
        policy = EtagPolicy(timeout_seconds=timeout, cleanup_seconds=1)
        self.cache.remember(QUESTION._replace(parent_uid=parent), etag=etag, body=b"x" * size, policy=policy, now=self.now)

    @rule(parent=st.sampled_from("abcdef"))
    def forget(self, parent: str):
        self.cache.forget(QUESTION._replace(parent_uid=parent))

    @rule(seconds=st.integers(0, 4))
    def wait_and_collect(self, seconds: int):
        self.now += seconds
        self.cache.collect(now=self.now)

    @precondition(lambda self: not len(self.cache))
    @rule()
    def is_weightless_when_empty(self):
        assert self.cache.size_bytes == 0

    @invariant()
    def holds_no_more_than_it_may(self):
        assert 0 <= self.cache.size_bytes <= 3000


TestAnyUse = AnyUse.TestCase


@given(st.lists(st.integers(1, 20), min_size=1, max_size=20))
def test_whatever_expires_leaves_nothing_behind(timeouts: list[int]):
    cache = EtagCache(10**6)
    for number, timeout in enumerate(timeouts):
        policy = EtagPolicy(timeout_seconds=timeout, cleanup_seconds=timeout)
        cache.remember(QUESTION._replace(parent_uid=str(number)), etag='"v"', body=b"x", policy=policy, now=0.0)

    cache.collect(now=40.0)

    assert (len(cache), cache.size_bytes) == (0, 0)
