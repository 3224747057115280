"""The business logic of the Hello controller: for each Hello, a greeting in three languages.

This is all that a user of Metaloop writes: a function from what is there to what ought to be there, and a web server
that calls it. Python's standard library is enough for both: `python hook.py [PORT [ADDRESS]]`.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

GREETINGS = {"english": "Hello", "french": "Bonjour", "german": "Guten Tag"}


def sync(request: Json) -> Json:
    """What ought to be there: one ConfigMap a language, and in the status how many of them have been seen."""
    parent, observed = request["parent"], request["children"]["ConfigMap.v1"]
    return {
        "status": {"greetings": len(observed)},
        "children": [greeting(parent, language) for language in GREETINGS],
    }


def greeting(parent: Json, language: str) -> Json:
    """The ConfigMap with one greeting, in the parent's own namespace."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{parent['metadata']['name']}-{language}", "labels": {"language": language}},
        "data": {"greeting": f"{GREETINGS[language]}, {parent['spec']['who']}!"},
    }


class Hooks(BaseHTTPRequestHandler):
    """Serves `POST /sync`: a JSON request in, a JSON answer out."""

    protocol_version = "HTTP/1.1"  # keeps connections open from one call to the next
    disable_nagle_algorithm = True  # headers and body are two small writes: without delay

    def do_POST(self) -> None:
        """Answer one call."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/sync":
            self.answer(200, sync(request))
        else:
            self.answer(404, {"error": f"no hook at {self.path}"})

    def answer(self, status: int, body: Json) -> None:
        """Send a status and a JSON body."""
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names them so
        """Say nothing of each call."""


class Server(ThreadingHTTPServer):
    """A thread for each connection."""

    request_queue_size = 128  # many parents may change at once


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8090
    address = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    server = Server((address, port), Hooks)
    print(f"serving hooks at http://{address}:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()
