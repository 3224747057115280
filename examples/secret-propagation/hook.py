"""Copies the Secrets of some namespaces into others; both are told by the namespaces' labels.

Nobody lists names: a namespace takes part by its labels, and a Secret by its own. So the customize hook asks for
Secrets *by the labels of their namespaces* (`namespaceSelector`), and sync is called again when a Secret changes, and
when a namespace comes, goes or is labelled anew.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]


def customize(request: Json) -> Json:
    """What sync wants to be shown beside the copies: the Secrets to share, and the namespaces to share them with."""
    spec = request["parent"]["spec"]
    shared = {"apiVersion": "v1", "resource": "secrets", "namespaceSelector": spec["from"], "labelSelector": spec["secrets"]}
    receivers = {"apiVersion": "v1", "resource": "namespaces", "labelSelector": spec["to"]}
    return {"relatedResources": [shared, receivers]}


def sync(request: Json) -> Json:
    """A copy of each shared Secret in each receiving namespace.

    Of two Secrets of one name, the one of the first namespace is shared.
    """
    related = request["related"]
    by_name = {secret["metadata"]["name"]: secret for _, secret in sorted(related["Secret.v1"].items(), reverse=True)}
    receivers = [name for name, namespace in related["Namespace.v1"].items() if "deletionTimestamp" not in namespace["metadata"]]
    copies = [copy_of(secret, namespace) for secret in by_name.values() for namespace in receivers]
    return {
        "status": {"secrets": len(by_name), "namespaces": len(receivers), "copies": len(request["children"]["Secret.v1"])},
        "children": copies,
    }


def copy_of(secret: Json, namespace: str) -> Json:
    """The Secret's content under its name, in another namespace.

    It has no labels, so that no copy is taken for a Secret to share.
    """
    metadata = {"name": secret["metadata"]["name"], "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": secret["type"], "data": secret.get("data") or {}}


HOOKS = {"/customize": customize, "/sync": sync}


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
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8093
    address = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    server = ThreadingHTTPServer((address, port), Hooks)
    print(f"serving hooks at http://{address}:{port}", flush=True)
    server.serve_forever()
