"""Makes a copy of each ConfigMap that a ConfigMapTransform selects, with all values in upper or lower case.

Inputs and outputs are of the same kind. The outputs of a transform are never its own inputs, so nothing recurs even if
the transform selects everything.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]


def transform(request: Json) -> Json:
    """One ConfigMap for one ConfigMap, named after both it and the transform."""
    parent, source = request["parent"], request["input"]
    change = str.lower if parent["spec"].get("case") == "lower" else str.upper
    name = f"{source['metadata']['name']}-{parent['metadata']['name']}"
    data = {key: change(value) for key, value in source.get("data", {}).items()}
    return {"outputs": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}]}


HOOKS = {"/map": transform}


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
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8099
    address = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    server = ThreadingHTTPServer((address, port), Hooks)
    print(f"serving hooks at http://{address}:{port}", flush=True)
    server.serve_forever()
