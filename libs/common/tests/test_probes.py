import httpx
import pytest
from fastapi import FastAPI

from metaloop.common.errors import Unavailable
from metaloop.common.probes import Probes


async def fine() -> None:
    return


async def away() -> None:
    raise Unavailable("the bus is away")


async def unreachable() -> None:
    raise ConnectionRefusedError


async def answer(probes: Probes, path: str) -> httpx.Response:
    app = FastAPI()
    probes.mount(app)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service") as client:
        return await client.get(path)


async def test_a_service_without_checks_is_well():
    response = await answer(Probes(), "/healthz")

    assert response.status_code == 200
    assert response.json() == {"checks": [], "failing": {}}


async def test_what_fails_is_named_and_says_why():
    probes = Probes()
    probes.ready("cluster", fine)
    probes.ready("bus", away)
    probes.ready("gateway", unreachable)

    response = await answer(probes, "/readyz")

    assert response.status_code == 503
    assert response.json() == {
        "checks": ["cluster", "bus", "gateway"],
        "failing": {"bus": "the bus is away", "gateway": "ConnectionRefusedError"},
    }


async def test_being_alive_does_not_take_being_ready():
    probes = Probes()
    probes.ready("bus", away)
    probes.alive("loop", fine)

    assert (await answer(probes, "/healthz")).status_code == 200


async def test_a_check_that_is_named_again_replaces_the_former():
    probes = Probes()
    probes.alive("bus", away)
    probes.alive("bus", fine)

    assert (await answer(probes, "/healthz")).status_code == 200


async def test_a_fault_in_a_check_is_not_taken_for_a_state_of_the_service():
    async def faulty() -> None:
        raise KeyError("x")

    probes = Probes()
    probes.alive("faulty", faulty)

    with pytest.raises(KeyError):
        await answer(probes, "/healthz")


async def test_metrics_are_in_the_form_that_prometheus_reads():
    response = await answer(Probes(), "/metrics")

    assert response.headers["content-type"].startswith("text/plain")
    assert "process_resident_memory_bytes" in response.text
