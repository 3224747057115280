"""Takes a VolumeSnapshot of each PersistentVolumeClaim that a SnapshotSchedule selects, every `spec.snapshotInterval`.

A snapshot is let go once it is older than `spec.snapshotTTL`. That also holds for the snapshots of a claim that is
gone: they are what the claim can be restored from.
"""

import json
import sys
import time
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

API_VERSION = "snapshot.storage.k8s.io/v1"
GROUP = f"VolumeSnapshot.{API_VERSION}"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds_of(duration: str) -> float:
    """The seconds in a duration such as `90s`, `6h` or `10d`."""
    return float(duration[:-1]) * _SECONDS[duration[-1]]


def map_claim(request: Json, *, now: float | None = None) -> Json:
    """The snapshots of one claim: those that are not expired, and a new one if the last is older than the interval."""
    now = time.time() if now is None else now
    spec, claim = request["parent"]["spec"], request["input"]["metadata"]["name"]
    interval, ages = seconds_of(spec["snapshotInterval"]), ages_of(request, now)
    kept = living(ages, spec)
    due_in = interval - min(ages.values(), default=interval)
    outputs = [snapshot(name, claim, spec) for name in kept]
    if due_in <= 0:
        stamp = datetime.fromtimestamp(now).strftime("%Y%m%d-%H%M%S")  # noqa: DTZ006 - for people, in their time
        outputs.append(snapshot(f"{claim}-{stamp}", claim, spec))
        due_in = min(interval, seconds_of(spec["snapshotTTL"]))
    return {"outputs": outputs, "resyncAfterSeconds": min([due_in, *expiries(kept, ages, spec)])}


def tombstone(request: Json, *, now: float | None = None) -> Json:
    """The snapshots of a claim that is gone, until they expire."""
    now = time.time() if now is None else now
    spec, ages, shown = request["parent"]["spec"], ages_of(request, now), request["outputs"][GROUP]
    kept = living(ages, spec)
    answer: Json = {"outputs": [each for each in shown.values() if each["metadata"]["name"] in kept]}
    return answer | ({"resyncAfterSeconds": min(expiries(kept, ages, spec))} if kept else {})


def ages_of(request: Json, now: float) -> dict[str, float]:
    """How old each of the claim's snapshots is, in seconds."""
    shown = [each["metadata"] for each in request["outputs"][GROUP].values()]
    return {each["name"]: now - datetime.fromisoformat(each["creationTimestamp"]).timestamp() for each in shown}


def living(ages: dict[str, float], spec: Json) -> list[str]:
    """The snapshots that are not expired."""
    return sorted(name for name, age in ages.items() if age < seconds_of(spec["snapshotTTL"]))


def expiries(names: list[str], ages: dict[str, float], spec: Json) -> list[float]:
    """In how many seconds each snapshot expires."""
    return [max(0.1, seconds_of(spec["snapshotTTL"]) - ages[name]) for name in names]


def snapshot(name: str, claim: str, spec: Json) -> Json:
    """A VolumeSnapshot of a claim."""
    content: Json = {"source": {"persistentVolumeClaimName": claim}}
    if "snapshotClass" in spec:
        content["volumeSnapshotClassName"] = spec["snapshotClass"]
    return {"apiVersion": API_VERSION, "kind": "VolumeSnapshot", "metadata": {"name": name, "labels": {"claim": claim}}, "spec": content}


HOOKS = {"/map": map_claim, "/tombstone": tombstone}


class Hooks(BaseHTTPRequestHandler):
    """Serves each hook at its path: a JSON request in, a JSON answer out."""

    protocol_version = "HTTP/1.1"  # keeps connections open from one call to the next
    disable_nagle_algorithm = True  # headers and body are two small writes: without delay

    def do_POST(self) -> None:
        """Answer one call."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        hook = HOOKS.get(self.path)
        content = json.dumps(hook(request) if hook else {"error": f"no hook at {self.path}"}).encode()
        self.send_response(200 if hook else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names them so
        """Say nothing of each call."""


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8100
    address = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    server = ThreadingHTTPServer((address, port), Hooks)
    print(f"serving hooks at http://{address}:{port}", flush=True)
    server.serve_forever()
