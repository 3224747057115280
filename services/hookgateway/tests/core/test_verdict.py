"""What each answer of a webhook means: the table of docs/api/hook.md."""

import gzip
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.faults import Fault
from metaloop.common.hooks.call import Accepted, NotModified, Rejected, Throttled
from metaloop.hookgateway import errors
from metaloop.hookgateway.core.etag import CachedAnswer
from metaloop.hookgateway.core.redaction import NO_SECRETS, Secrets
from metaloop.hookgateway.core.verdict import MAX_DELAY_SECONDS, Answer, counts_as_up, delay_seconds, verdict_of_answer, verdict_of_error

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
CACHED = CachedAnswer(etag='"v1"', body=b'{"children":[]}')


def verdict_on(answer: Answer, *, sent: CachedAnswer | None = None, secrets: Secrets = NO_SECRETS):
    return verdict_of_answer(answer, sent=sent, now=NOW, limit=1000, secrets=secrets)


def test_200_is_accepted_whatever_its_body_looks_like():
    assert verdict_on(Answer(status=200, body=b"<html>")) == Accepted(body=b"<html>")


def test_compressed_200_is_accepted_as_plain_bytes():
    assert verdict_on(Answer(status=200, body=gzip.compress(b"{}"), coding="gzip")) == Accepted(body=b"{}")


@pytest.mark.parametrize("status", [304, 412])
def test_304_to_a_conditional_request_is_the_cached_answer(status: int):
    assert verdict_on(Answer(status=status), sent=CACHED) == NotModified(body=CACHED.body)


@pytest.mark.parametrize("status", [304, 412])
def test_304_to_an_unconditional_request_is_refused(status: int):
    with pytest.raises(errors.StatusUnexpected):
        verdict_on(Answer(status=status))


@pytest.mark.parametrize(
    "status", [201, 202, 204, 206, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 409, 500, 501, 502, 503, 504, 599]
)
def test_any_other_status_is_refused(status: int):
    with pytest.raises(errors.StatusUnexpected, match=f"webhook answered {status}: no luck"):
        verdict_on(Answer(status=status, body=b"no luck"))


def test_refused_answer_without_body_says_so():
    with pytest.raises(errors.StatusUnexpected, match="webhook answered 500 with no body"):
        verdict_on(Answer(status=500))


@pytest.mark.parametrize("sent", [None, CACHED])
def test_429_is_throttled_with_or_without_a_cached_answer(sent: CachedAnswer | None):
    verdict = verdict_on(Answer(status=429, retry_after="7", body=b"later"), sent=sent)

    assert verdict == Throttled(after_seconds=7, fault=Fault.WEBHOOK_BUSY, message="webhook answered 429: later")


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        ("1", 1.0),
        ("120", 120.0),
        ("0120", 120.0),
        (format_datetime(NOW + timedelta(seconds=30), usegmt=True), 30.0),
        ("Sunday, 01-Mar-26 12:00:09 GMT", 9.0),
        ("Sun Mar  1 12:00:09 2026", 9.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(retry_after: str, seconds: float):
    assert delay_seconds(retry_after, now=NOW) == seconds


def test_retry_after_date_is_rounded_up():
    half_past = NOW + timedelta(seconds=0.5)

    assert delay_seconds(format_datetime(NOW + timedelta(seconds=3), usegmt=True), now=half_past) == 3.0


@pytest.mark.parametrize(
    "retry_after", ["", "0", "-5", "soon", "1.5", "1e3", "١٢", "9" * 13, format_datetime(NOW, usegmt=True), "Fri, 99 Foo"]
)
def test_unusable_retry_after_leaves_the_delay_to_the_callers_backoff(retry_after: str):
    """Zero would be a hot loop."""
    assert delay_seconds(retry_after, now=NOW) is None


@pytest.mark.parametrize("retry_after", ["999999999999", "Fri, 01 Jan 2999 00:00:00 GMT"])
def test_retry_after_is_capped(retry_after: str):
    assert delay_seconds(retry_after, now=NOW) == MAX_DELAY_SECONDS


@given(st.text())
def test_any_retry_after_is_positive_and_capped_or_ignored(retry_after: str):
    seconds = delay_seconds(retry_after, now=NOW)

    assert seconds is None or 0 < seconds <= MAX_DELAY_SECONDS


@pytest.mark.parametrize(
    ("status", "up"), [(200, True), (304, True), (404, True), (429, True), (500, True), (502, False), (503, False), (504, False)]
)
def test_only_a_proxys_status_counts_as_a_failure_of_the_endpoint(status: int, *, up: bool):
    assert counts_as_up(status) is up


def _leaves(tree: type[errors.HookError]) -> list[type[errors.HookError]]:
    below = [leaf for branch in tree.__subclasses__() for leaf in _leaves(branch)]
    return below or [tree]


@pytest.mark.parametrize("error", [leaf for leaf in _leaves(errors.HookError) if not issubclass(leaf, errors.PutOff)])
def test_rejection_carries_the_fault_of_its_error(error: type[errors.HookError]):
    verdict = verdict_of_error(error("what happened"))

    assert isinstance(verdict, Rejected)
    assert (verdict.fault, verdict.message) == (error.fault, "what happened")


@pytest.mark.parametrize("error", [errors.CircuitOpen, errors.ControllerBusy, errors.EndpointBusy])
def test_call_that_was_put_off_is_throttled(error: type[errors.PutOff]):
    verdict = verdict_of_error(error("not now", after_seconds=2.5))

    assert verdict == Throttled(after_seconds=2.5, fault=error.fault, message="not now")


def test_message_without_secrets_is_unchanged():
    verdict = verdict_of_error(errors.CredentialsUnavailable("Secret prod/token does not exist"))

    assert isinstance(verdict, Rejected)
    assert verdict.message == "Secret prod/token does not exist"


def test_secrets_in_messages_are_masked():
    secrets = Secrets.of(["hunter2"])

    assert verdict_of_error(errors.ConnectionLost("closed after hunter2"), secrets=secrets) == Rejected(
        fault=Fault.CONNECTION_LOST, message="closed after ***"
    )
