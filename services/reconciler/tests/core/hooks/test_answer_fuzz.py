"""Some 100,000 bodies that a webhook may send by mistake or on purpose: each is quickly accepted or rejected."""

from time import process_time

import pytest
from bodies import Bodies

from metaloop.common.api import composite
from metaloop.common.errors import InvalidAnswer
from metaloop.common.json import JsonObject, dumps, loads
from metaloop.reconciler.core.hooks.answer import sync_answer
from metaloop.reconciler.core.hooks.body import QUOTED_KEYS, QUOTED_LENGTH
from metaloop.reconciler.core.model import Answer

BODIES_OF_A_SEED = 20_000
LONGEST_SECONDS = 1.0


def read(body: bytes, *, is_strict: bool) -> Answer | InvalidAnswer:
    """The answer in a body, or the error."""
    try:
        return sync_answer(body, is_strict=is_strict, keys=composite.KEYS)
    except InvalidAnswer as refusal:
        return refusal


def check(read: Answer | InvalidAnswer) -> None:
    """Raises AssertionError unless all fields have the declared types."""
    if isinstance(read, InvalidAnswer):
        assert len(str(read)) < 400, "it becomes an event's message"
        return
    answer = read
    assert all(isinstance(child["kind"], str) and child["kind"] for child in answer.children)
    assert answer.resync_after_seconds is None or answer.resync_after_seconds > 0
    assert len(answer.unknown_keys) <= QUOTED_KEYS
    assert all(len(key) <= QUOTED_LENGTH for key in answer.unknown_keys)
    stored: list[JsonObject] = [answer.status or {}, *answer.children]
    assert loads(dumps(stored)) == stored, "what comes of an answer is sent to the API server, and back to the webhook"


@pytest.mark.parametrize("seed", range(5))
def test_any_body_is_an_answer_or_refused(seed: int):
    bodies, answers = Bodies(seed), 0
    for _ in range(BODIES_OF_A_SEED):
        body = bodies.next()
        began = process_time()
        try:
            loose, strict = read(body, is_strict=False), read(body, is_strict=True)
            check(loose)
            check(strict)
            assert isinstance(strict, InvalidAnswer) or strict == loose, "strictly read, there are fewer answers and no others"
        except Exception as error:
            error.add_note(f"seed {seed}: {body[:2000]!r}")
            raise
        assert process_time() - began < LONGEST_SECONDS, body[:2000]
        answers += isinstance(loose, Answer)

    assert 0.1 < answers / BODIES_OF_A_SEED < 0.9, "neither refusals nor answers are the exception"
