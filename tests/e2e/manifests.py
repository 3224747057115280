"""What `deploy/` renders, by the real kubectl, and how its parts are read."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from metaloop.common.json import JsonObject, is_object
from metaloop.common.objects import unstructured

ROOT = Path(__file__).parents[2]
OVERLAYS = ROOT / "deploy" / "kustomize" / "overlays"
NAMES = tuple(sorted(folder.name for folder in OVERLAYS.iterdir()))
NAMESPACE = "metaloop"
SERVICES = ("watcher", "reconciler", "hookgateway")


@dataclass(frozen=True, slots=True)
class Kubectl:
    """The real kubectl."""

    program: Path

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        """What it prints; fails with what it complains about."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(self.program, *arguments, stdin=pipe, stdout=pipe, stderr=pipe)
        out, complaint = await process.communicate(stdin.encode())
        assert process.returncode == 0, complaint.decode()
        return out.decode()

    async def rendered(self, overlay: str) -> list[JsonObject]:
        """The objects of an overlay."""
        return list(yaml.safe_load_all(await self("kustomize", str(OVERLAYS / overlay))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container, and the workload whose pods have it."""

    workload: JsonObject
    spec: JsonObject

    @property
    def name(self) -> str:
        """The name of the workload."""
        return unstructured.name(self.workload)

    @property
    def replicas(self) -> int:
        """How many pods there are when all is well."""
        return int(unstructured.child_object(self.workload, "spec").get("replicas", 1))  # type: ignore[arg-type]

    @property
    def environment(self) -> dict[str, str]:
        """The variables that are written down in the manifest; those from a Secret as `secret/key`."""
        found: dict[str, str] = {}
        for entry in self.spec.get("env", []):  # type: ignore[union-attr]
            source = entry.get("valueFrom", {}).get("secretKeyRef")  # type: ignore[union-attr]
            found[entry["name"]] = f"{source['name']}/{source['key']}" if source else str(entry.get("value", ""))  # type: ignore[index, call-overload]
        return found


def of_kind(objects: Sequence[JsonObject], *kinds: str) -> list[JsonObject]:
    """The objects of these kinds."""
    return [obj for obj in objects if obj["kind"] in kinds]


def containers(objects: Sequence[JsonObject]) -> Iterator[Container]:
    """Every container of every workload."""
    for workload in of_kind(objects, "Deployment", "StatefulSet", "Job"):
        for spec in pod_of(workload)["containers"]:  # type: ignore[union-attr]
            assert is_object(spec)
            yield Container(workload=workload, spec=spec)


def pod_of(workload: JsonObject) -> JsonObject:
    """The spec of a workload's pods."""
    return unstructured.child_object(unstructured.child_object(unstructured.child_object(workload, "spec"), "template"), "spec")
