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
from metaloop.hookgateway.core.clean import NO_SECRETS, Secrets
from metaloop.hookgateway.core.etag import Remembered
from metaloop.hookgateway.core.verdict import MAX_DELAY_SECONDS, Answer, delay_seconds, is_sign_of_life, judge, verdict_of

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
REMEMBERED = Remembered(etag='"v1"', body=b'{"children":[]}')


def judged(answer: Answer, *, sent: Remembered | None = None, secrets: Secrets = NO_SECRETS):
    return judge(answer, sent=sent, now=NOW, limit=1000, secrets=secrets)


def test_200_is_accepted_whatever_its_body_looks_like():
    assert judged(Answer(status=200, body=b"<html>")) == Accepted(body=b"<html>")


def test_compressed_200_is_accepted_as_plain_bytes():
    assert judged(Answer(status=200, body=gzip.compress(b"{}"), coding="gzip")) == Accepted(body=b"{}")


@pytest.mark.parametrize("status", [304, 412])
def test_unchanged_answer_that_was_asked_for_is_the_remembered_one(status: int):
    assert judged(Answer(status=status), sent=REMEMBERED) == NotModified(body=REMEMBERED.body)


@pytest.mark.parametrize("status", [304, 412])
def test_unchanged_answer_that_nobody_asked_for_is_refused(status: int):
    with pytest.raises(errors.StatusUnexpected):
        judged(Answer(status=status))


@pytest.mark.parametrize(
    "status", [201, 202, 204, 206, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 409, 500, 501, 502, 503, 504, 599]
)
def test_any_other_status_is_refused(status: int):
    with pytest.raises(errors.StatusUnexpected, match=f"webhook answered {status}: no luck"):
        judged(Answer(status=status, body=b"no luck"))


def test_refused_answer_without_body_says_so():
    with pytest.raises(errors.StatusUnexpected, match="webhook answered 500 with no body"):
        judged(Answer(status=500))


@pytest.mark.parametrize("sent", [None, REMEMBERED])
def test_429_comes_before_everything_else(sent: Remembered | None):
    verdict = judged(Answer(status=429, retry_after="7", body=b"later"), sent=sent)

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
def test_retry_after_that_says_nothing_leaves_the_delay_to_the_callers_backoff(retry_after: str):
    """Zero would be a hot loop."""
    assert delay_seconds(retry_after, now=NOW) is None


@pytest.mark.parametrize("retry_after", ["999999999999", "Fri, 01 Jan 2999 00:00:00 GMT"])
def test_retry_after_parks_nobody_for_years(retry_after: str):
    assert delay_seconds(retry_after, now=NOW) == MAX_DELAY_SECONDS


@given(st.text())
def test_retry_after_is_never_a_reason_to_fail_or_to_loop(retry_after: str):
    seconds = delay_seconds(retry_after, now=NOW)

    assert seconds is None or 0 < seconds <= MAX_DELAY_SECONDS


@pytest.mark.parametrize(
    ("status", "alive"), [(200, True), (304, True), (404, True), (429, True), (500, True), (502, False), (503, False), (504, False)]
)
def test_only_what_stands_in_for_a_missing_webhook_counts_against_the_endpoint(status: int, *, alive: bool):
    assert is_sign_of_life(status) is alive


def _leaves(tree: type[errors.HookError]) -> list[type[errors.HookError]]:
    below = [leaf for branch in tree.__subclasses__() for leaf in _leaves(branch)]
    return below or [tree]


@pytest.mark.parametrize("error", [leaf for leaf in _leaves(errors.HookError) if not issubclass(leaf, errors.PutOff)])
def test_rejection_carries_the_fault_of_its_error(error: type[errors.HookError]):
    verdict = verdict_of(error("what happened"))

    assert isinstance(verdict, Rejected)
    assert (verdict.fault, verdict.message) == (error.fault, "what happened")


@pytest.mark.parametrize("error", [errors.CircuitOpen, errors.ControllerBusy])
def test_a_call_that_was_put_off_is_throttled(error: type[errors.PutOff]):
    verdict = verdict_of(error("not now", after_seconds=2.5))

    assert verdict == Throttled(after_seconds=2.5, fault=error.fault, message="not now")


def test_our_own_words_are_left_alone():
    verdict = verdict_of(errors.CredentialsUnavailable("Secret prod/token does not exist"))

    assert isinstance(verdict, Rejected)
    assert verdict.message == "Secret prod/token does not exist"


def test_no_error_tells_a_secret():
    secrets = Secrets.of(["hunter2"])

    assert verdict_of(errors.ConnectionLost("closed after hunter2"), secrets=secrets) == Rejected(
        fault=Fault.CONNECTION_LOST, message="closed after ***"
    )
