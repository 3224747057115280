"""A real Jaeger, which receives spans by OTLP and serves traces."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from metaloop.common.json import JsonObject
from metaloop.devkit import probes
from metaloop.devkit.ports import LOOPBACK, free_ports
from metaloop.devkit.processes import Program, group
from metaloop.devkit.workdir import private_folder

_SERVERS = ("collector.otlp.http", "collector.otlp.grpc", "collector.grpc-server", "collector.http-server", "admin.http")
_QUERIES = ("query.http-server", "query.grpc-server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span of a trace."""

    service: str
    name: str
    id: str
    parent_id: str
    """Empty for the first span of a trace, or if the parent is of another system."""
    attributes: Mapping[str, object]
    events: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Jaeger:
    """A running Jaeger that keeps traces in memory."""

    otlp_endpoint: str
    query_url: str

    @staticmethod
    @asynccontextmanager
    async def start(program: Path, workdir: Path) -> AsyncIterator["Jaeger"]:
        """Jaeger, ready for as long as the block lasts."""
        ports = dict(zip((*_SERVERS, *_QUERIES), free_ports(len(_SERVERS + _QUERIES)), strict=True))
        flags = [f"--{server}.host-port={LOOPBACK}:{port}" for server, port in ports.items()]
        query_url = f"http://{LOOPBACK}:{ports['query.http-server']}"
        jaeger = Program(
            name="jaeger",
            argv=(str(program), *flags),
            ready=probes.http_ok(f"{query_url}/api/services"),
            folder=private_folder(workdir, "jaeger"),
            env={"SPAN_STORAGE_TYPE": "memory"},
        )
        async with group() as daemons:
            await daemons.start(jaeger)
            yield Jaeger(otlp_endpoint=f"http://{LOOPBACK}:{ports['collector.otlp.http']}", query_url=query_url)

    async def everything(self) -> str:
        """All traces of all services, as JSON."""
        async with httpx.AsyncClient(base_url=self.query_url, trust_env=False) as client:
            services = (await client.get("/api/services")).raise_for_status().json()["data"] or []
            answers = [await client.get("/api/traces", params={"service": service, "limit": 10_000}) for service in services]
        return "\n".join(answer.raise_for_status().text for answer in answers)

    async def trace(self, trace_id: str) -> list[Span]:
        """The spans of a trace that have arrived so far, by their start times."""
        async with httpx.AsyncClient(base_url=self.query_url, trust_env=False) as client:
            answer = await client.get(f"/api/traces/{trace_id}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return []
        [trace] = answer.raise_for_status().json()["data"]
        return [_span(raw, trace["processes"]) for raw in sorted(trace["spans"], key=lambda raw: raw["startTime"])]


def _span(raw: JsonObject, processes: JsonObject) -> Span:
    process: dict[str, str] = processes[str(raw["processID"])]  # type: ignore[assignment]
    references: list[dict[str, str]] = raw["references"]  # type: ignore[assignment]
    tags: list[dict[str, object]] = raw["tags"]  # type: ignore[assignment]
    logs: list[dict[str, list[dict[str, str]]]] = raw["logs"]  # type: ignore[assignment]
    return Span(
        service=process["serviceName"],
        name=str(raw["operationName"]),
        id=str(raw["spanID"]),
        parent_id=references[0]["spanID"] if references else "",
        attributes={str(tag["key"]): tag["value"] for tag in tags},
        events=tuple(field["value"] for log in logs for field in log["fields"] if field["key"] == "event"),
    )
