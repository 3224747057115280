"""Calls the hooks of a component: the one that generates its objects, and those before and after what we do ourselves.

Rules
    1. All hooks are sent the same: the component, where its objects go, its digest and revision, and what it refers to.
    2. Any of them may answer that it is to be asked again later. That ends the pass, and is no failure.
    3. What the generator states of the status replaces what was stated before the pass. All others add to it.
    4. Each hook may be called again for the same pass, if what follows it fails: it has to be idempotent.
"""

from typing import Final

from metaloop.common.api.component import KEYS, stated_namespace
from metaloop.common.api.hook import RETRY_FIELDS, Hook, LifecycleHookName
from metaloop.common.errors import InvalidAnswer
from metaloop.common.faults import Fault
from metaloop.common.json import dumps
from metaloop.reconciler.core.hooks.answer import seconds_in, status_in, sync_answer
from metaloop.reconciler.core.hooks.body import Body, body_of
from metaloop.reconciler.core.kinds.component_run import ComponentRun
from metaloop.reconciler.core.model import Answer
from metaloop.reconciler.core.steps import ReportUnknownKeys, Resync, Steps, call_hook
from metaloop.reconciler.errors import HookThrottled, RetryAsked

_LIFECYCLE_FIELDS: Final = frozenset({"status", "resyncAfterSeconds"}) | RETRY_FIELDS


def generate(run: ComponentRun) -> Steps[Answer]:
    """The answer of the generator. The resync that it asks for happens even if the rest of the pass fails."""
    hook = run.controller.generate
    wire = yield from _called(run, hook)
    if b'"retriable"' in wire:  # rare: a large answer is not parsed twice
        _require_no_retry(body_of(wire, keys=KEYS.answer_fields, is_strict=hook.strict), run, hook)
    answer = sync_answer(wire, is_strict=hook.strict, keys=KEYS)
    yield from _follow(answer.resync_after_seconds, answer.unknown_keys)
    run.stated = run.stated.whole(answer.status or {})
    return answer


def call_lifecycle_hook(run: ComponentRun, name: LifecycleHookName) -> Steps[None]:
    """Call one of the other hooks, if it is declared, and take what it states of the status."""
    hook = run.controller.lifecycle_hooks.get(name)
    if hook is None:
        return
    wire = yield from _called(run, hook)
    body = body_of(wire, keys=_LIFECYCLE_FIELDS, is_strict=hook.strict)
    _require_no_retry(body, run, hook)
    yield from _follow(seconds_in(body.fields.get("resyncAfterSeconds")), body.unknown_keys)
    run.stated = run.stated.merged(status_in(body.fields.get("status")) or {})


def _called(run: ComponentRun, hook: Hook) -> Steps[bytes]:
    """The body of a hook's answer."""
    try:
        [wire] = yield from call_hook(run.observed, hook, {"": dumps(_request(run))})
    except HookThrottled as error:
        if error.fault is not Fault.WEBHOOK_BUSY or error.after_seconds is not None:
            raise
        raise HookThrottled(run.intervals.retry, fault=error.fault, message=str(error)) from error
    return wire


def _request(run: ComponentRun) -> dict[str, object]:
    return {
        "controller": run.controller.shown,
        "parent": run.observed.parent,
        "namespace": stated_namespace(run.controller, run.observed.parent),
        "name": run.observed.name,
        "digest": run.progress.digest,
        "revision": run.progress.revision,
        "references": [each.shown() for each in run.contents],
    }


def _follow(resync_after_seconds: float | None, unknown_keys: tuple[str, ...]) -> Steps[None]:
    if resync_after_seconds is not None:
        yield Resync(resync_after_seconds)
    if unknown_keys:
        yield ReportUnknownKeys(unknown_keys)


def _require_no_retry(body: Body, run: ComponentRun, hook: Hook) -> None:
    """Raise RetryAsked if an answer says that it is none yet, and InvalidAnswer if it says so in a wrong way."""
    retriable, message = body.fields.get("retriable"), body.fields.get("message") or ""
    if retriable is not None and not isinstance(retriable, bool):
        raise InvalidAnswer("retriable", "must be true or false")
    if not isinstance(message, str):
        raise InvalidAnswer("message", "must be a string")
    after = seconds_in(body.fields.get("retryAfterSeconds"), "retryAfterSeconds")
    if retriable:
        raise RetryAsked(after or run.intervals.retry, f"{hook.name} hook: {message or 'asks for a retry'}")
