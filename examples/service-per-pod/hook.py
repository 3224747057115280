"""Gives each Pod of a StatefulSet a Service of its own, for any StatefulSet that asks for it by an annotation.

Two decorators share the work. One attaches the Services to the StatefulSet; the other labels each Pod with its own
name, so that a Service can select it. Neither knows of the other, and the StatefulSet's own controller knows of
neither.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

PORTS = "service-per-pod.example.com/ports"  # on the StatefulSet: "80:8080,443:8443", the Service's ports and the Pod's
LABEL = "service-per-pod.example.com/label"  # on the Pods: the label that is to hold their name


def services(request: Json) -> Json:
    """One Service for each Pod. A StatefulSet that opts out or is deleted gets none, and is done when none is left."""
    if request["finalizing"]:
        return {"attachments": [], "finalized": not request["attachments"]["Service.v1"]}
    replicas = request["object"]["spec"].get("replicas", 1)
    return {"attachments": [service(request["object"], index) for index in range(replicas)]}


def service(stateful_set: Json, index: int) -> Json:
    """The Service of one Pod, which has the Pod's name."""
    pod = f"{stateful_set['metadata']['name']}-{index}"
    label = stateful_set["spec"]["template"]["metadata"]["annotations"][LABEL]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": pod, "labels": {"app": "service-per-pod"}},
        "spec": {"selector": {label: pod}, "ports": ports(stateful_set["metadata"]["annotations"][PORTS])},
    }


def ports(text: str) -> list[Json]:
    """The ports of a Service, from the annotation's text."""
    pairs = [pair.strip().split(":") for pair in text.split(",")]
    return [{"name": f"port-{port}", "port": int(port), "targetPort": int(target)} for port, target in pairs]


def name_label(request: Json) -> Json:
    """The Pod's name as its label."""
    metadata = request["object"]["metadata"]
    return {"labels": {metadata["annotations"][LABEL]: metadata["name"]}}


HOOKS = {"/services": services, "/name-label": name_label}


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
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8091
    address = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    server = ThreadingHTTPServer((address, port), Hooks)
    print(f"serving hooks at http://{address}:{port}", flush=True)
    server.serve_forever()
