"""The limit on requests in flight, as the API server accepts or rejects them."""

import asyncio

from metaloop.common.kube.request_limiter import MIN_LIMIT, RequestLimiter


async def acquiring(limiter: RequestLimiter, count: int) -> list[asyncio.Task[None]]:
    """So many requests that want to be sent, each as far as it gets."""
    tasks = [asyncio.create_task(limiter.acquire()) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_no_more_requests_than_the_limit_are_in_flight_and_the_next_follow_in_order():
    limiter = RequestLimiter(maximum=2)
    first, second, third, fourth = await acquiring(limiter, 4)

    limiter.release()
    await asyncio.sleep(0)

    assert [task.done() for task in (first, second, third, fourth)] == [True, True, True, False]
    fourth.cancel()


async def test_limit_falls_to_what_the_server_accepted_of_a_burst():
    limiter = RequestLimiter(maximum=64)
    await acquiring(limiter, 64)

    for _ in range(58):
        limiter.rejected()

    assert limiter.limit == 6


async def test_limit_falls_from_what_is_in_flight_and_not_from_what_might_be():
    limiter = RequestLimiter(maximum=64)
    await acquiring(limiter, 12)

    limiter.rejected()

    assert limiter.limit == 11


async def test_limit_never_falls_below_the_minimum():
    limiter = RequestLimiter(maximum=64)
    await acquiring(limiter, 64)

    for _ in range(200):
        limiter.rejected()

    assert limiter.limit == MIN_LIMIT


async def test_limit_grows_slowly_up_to_the_maximum():
    limiter = RequestLimiter(maximum=16)
    await acquiring(limiter, 9)
    limiter.rejected()

    for _ in range(4 * 8):
        limiter.accepted()
    assert limiter.limit == 8
    for _ in range(8):
        limiter.accepted()
    assert limiter.limit == 9
    for _ in range(4 * 16 * 16):
        limiter.accepted()

    assert limiter.limit == 16


async def test_rejected_request_is_sent_before_those_that_never_were():
    limiter = RequestLimiter(maximum=1)
    await limiter.acquire()
    fresh = asyncio.create_task(limiter.acquire())
    await asyncio.sleep(0)
    retry = asyncio.create_task(limiter.acquire(is_retry=True))
    await asyncio.sleep(0)

    limiter.release()
    await asyncio.sleep(0)

    assert (retry.done(), fresh.done()) == (True, False)
    fresh.cancel()


async def test_request_that_is_cancelled_while_it_waits_takes_no_slot():
    limiter = RequestLimiter(maximum=1)
    first, second, third = await acquiring(limiter, 3)
    second.cancel()
    await asyncio.sleep(0)

    limiter.release()
    await asyncio.sleep(0)

    assert (first.done(), second.cancelled(), third.done()) == (True, True, True)


async def test_request_that_is_cancelled_as_it_gets_its_slot_passes_it_on():
    limiter = RequestLimiter(maximum=1)
    _, second, third = await acquiring(limiter, 3)

    limiter.release()
    second.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert (second.cancelled(), third.done()) == (True, True)
