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


async def test_service_without_checks_is_healthy():
    response = await answer(Probes(alive={}), "/healthz")

    assert response.status_code == 200
    assert response.json() == {"checks": [], "failing": {}}


async def test_failing_check_is_named_with_its_reason():
    probes = Probes(alive={})
    probes.ready("cluster", fine)
    probes.ready("bus", away)
    probes.ready("gateway", unreachable)

    response = await answer(probes, "/readyz")

    assert response.status_code == 503
    assert response.json() == {
        "checks": ["cluster", "bus", "gateway"],
        "failing": {"bus": "the bus is away", "gateway": "ConnectionRefusedError"},
    }


async def test_service_that_is_not_ready_is_still_alive():
    probes = Probes(alive={"loop": fine})
    probes.ready("bus", away)

    assert (await answer(probes, "/healthz")).status_code == 200


async def test_check_replaces_another_of_the_same_name():
    probes = Probes(alive={})
    probes.ready("bus", away)
    probes.ready("bus", fine)

    assert (await answer(probes, "/readyz")).status_code == 200


async def test_service_with_a_failing_check_of_its_own_is_not_alive():
    response = await answer(Probes(alive={"loop": away}), "/healthz")

    assert response.status_code == 503
    assert response.json()["failing"] == {"loop": "the bus is away"}


async def test_unexpected_exception_of_a_check_is_not_reported_as_unhealthy():
    async def faulty() -> None:
        raise KeyError("x")

    probes = Probes(alive={"faulty": faulty})

    with pytest.raises(KeyError):
        await answer(probes, "/healthz")


async def test_metrics_are_in_prometheus_text_format():
    response = await answer(Probes(alive={}), "/metrics")

    assert response.headers["content-type"].startswith("text/plain")
    assert "process_resident_memory_bytes" in response.text
