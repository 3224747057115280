"""Keeps a copy of one ConfigMap in every namespace of the cluster.

The customize hook asks for the source by name, and for all namespaces by a selector that is empty: it selects
everything. A namespace that is created gets its copy at once, since a new related object is a reason to call sync.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]


def customize(request: Json) -> Json:
    """What sync wants to be shown beside the copies: the source, and all namespaces."""
    source = request["parent"]["spec"]["source"]
    return {
        "relatedResources": [
            {"apiVersion": "v1", "resource": "configmaps", "namespace": source["namespace"], "names": [source["name"]]},
            {"apiVersion": "v1", "resource": "namespaces", "labelSelector": {}},
        ]
    }


def sync(request: Json) -> Json:
    """A copy of the source everywhere but where it is, and where everything is about to go."""
    related, home = request["related"], request["parent"]["spec"]["source"]["namespace"]
    spaces = [name for name, space in related["Namespace.v1"].items() if name != home and "deletionTimestamp" not in space["metadata"]]
    copies = [copy_of(source, namespace) for source in related["ConfigMap.v1"].values() for namespace in spaces]
    return {"status": {"namespaces": len(spaces), "copies": len(request["children"]["ConfigMap.v1"])}, "children": copies}


def copy_of(source: Json, namespace: str) -> Json:
    """The source's content under its name, in another namespace."""
    copy = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": source["metadata"]["name"], "namespace": namespace}}
    return copy | {key: source[key] for key in ("data", "binaryData") if key in source}


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
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8094
    address = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    server = ThreadingHTTPServer((address, port), Hooks)
    print(f"serving hooks at http://{address}:{port}", flush=True)
    server.serve_forever()
