"""Renders the objects of a BeaconOperator: the kind Beacon, the operator that serves it, and a first Beacon.

The order follows from the kinds: the definition comes first and goes last, and Beacons are created last and go first.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

GROUP = "beacons.example.com"


def generate(request: Json) -> Json:
    """The objects of one BeaconOperator."""
    spec = request["parent"]["spec"]
    children = [definition(), account(), deployment(spec), beacon(spec["color"])]
    return {"children": children, "status": {"kind": f"Beacon.{GROUP}"}}


def definition() -> Json:
    """The CustomResourceDefinition of Beacon."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"color": {"type": "string"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Beacon", "plural": "beacons", "singular": "beacon"}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"beacons.{GROUP}"},
        "spec": spec,
    }


def account() -> Json:
    """The identity of the operator."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "beacon-operator"}}


def deployment(spec: Json) -> Json:
    """The operator. This one only sleeps."""
    container = {"name": "operator", "image": spec["image"], "command": ["python3", "-c", "import time; time.sleep(10**9)"]}
    pod = {"serviceAccountName": "beacon-operator", "terminationGracePeriodSeconds": 1, "containers": [container]}
    labels = {"app": "beacon-operator"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "beacon-operator"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def beacon(color: str) -> Json:
    """The Beacon that everybody gets."""
    return {"apiVersion": f"{GROUP}/v1", "kind": "Beacon", "metadata": {"name": "main"}, "spec": {"color": color}}


HOOKS = {"/generate": generate}


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
