"""A StatefulSet in some sixty lines: stable names and volumes, ordered creation, updates from last to first.

What makes it short is what the hook need not do. It says which Pods there ought to be for *this* spec; when the spec
changes, Metaloop asks it once for each revision, and moves one Pod at a time to the new one, as soon as all those moved
before are ready (`RollingRecreate`, `statusChecks`).
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]


def sync(request: Json) -> Json:
    """The volumes, and as many Pods as may be there by now: each waits until all before it are ready."""
    cats, pods, claims = request["parent"], request["children"]["Pod.v1"], request["children"]["PersistentVolumeClaim.v1"]
    replicas = cats["spec"]["replicas"]
    names = [f"{cats['metadata']['name']}-{index}" for index in range(replicas)]
    unready = next((index for index, name in enumerate(names) if not is_ready(pods.get(name))), replicas)
    # Those that exist stay, whatever the others do. The last is named first: that is the order of an update.
    wanted = [index for index in reversed(range(replicas)) if index <= unready or names[index] in pods]
    status = {"replicas": len(pods), "readyReplicas": sum(map(is_ready, pods.values()))}
    children = [pod(cats, index) for index in wanted] + volumes(cats, claims)
    return {"status": status, "children": children}


def finalize(request: Json) -> Json:
    """The same with one Pod less each time, the last first; done when none is left."""
    cats, pods = request["parent"], request["children"]["Pod.v1"]
    kept = sorted(pods)[:-1] if all("deletionTimestamp" not in pod["metadata"] for pod in pods.values()) else sorted(pods)
    children = [pod(cats, int(name.rpartition("-")[2])) for name in kept] + volumes(cats, request["children"]["PersistentVolumeClaim.v1"])
    return {"status": {"replicas": len(pods)}, "children": children, "finalized": not pods}


def is_ready(pod: Json | None) -> bool:
    """Whether a Pod is there, stays, and is ready."""
    if pod is None or "deletionTimestamp" in pod["metadata"]:
        return False
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod.get("status", {}).get("conditions", []))


def pod(cats: Json, index: int) -> Json:
    """One Pod, with a volume of its own for each claim template."""
    template, name = cats["spec"]["template"], f"{cats['metadata']['name']}-{index}"
    claims = cats["spec"].get("volumeClaimTemplates", [])
    volumes = [
        {"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": f"{claim['metadata']['name']}-{name}"}}
        for claim in claims
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], "name": name},
        "spec": {
            **template["spec"],
            "hostname": name,
            "subdomain": cats["spec"]["serviceName"],
            "volumes": [*template["spec"].get("volumes", []), *volumes],
        },
    }


def volumes(cats: Json, observed: Json) -> list[Json]:
    """The claims of all Pods, and those that are left of Pods that are gone: data are never thrown away."""
    prefix, replicas = cats["metadata"]["name"], cats["spec"]["replicas"]
    claims = []
    for template in cats["spec"].get("volumeClaimTemplates", []):
        wanted = {f"{template['metadata']['name']}-{prefix}-{index}" for index in range(replicas)}
        there = {name for name in observed if name.startswith(f"{template['metadata']['name']}-{prefix}-")}
        claims += [claim(cats, template, name) for name in sorted(wanted | there)]
    return claims


def claim(cats: Json, template: Json, name: str) -> Json:
    """One claim, which has the Pods' labels."""
    metadata = {"name": name, "labels": cats["spec"]["selector"]["matchLabels"]}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": template["spec"]}


HOOKS = {"/sync": sync, "/finalize": finalize}


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
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8098
    address = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    server = ThreadingHTTPServer((address, port), Hooks)
    print(f"serving hooks at http://{address}:{port}", flush=True)
    server.serve_forever()
