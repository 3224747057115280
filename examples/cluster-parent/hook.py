"""Gives each Team its environments: namespaces, each with a quota and with a ConfigMap that says who is at home there.

A Team is in no namespace; its children are both namespaces and objects in them. What belongs into a namespace is asked
for as soon as the namespace is observed, not before: the hook is called again when it is there.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]


def sync(request: Json) -> Json:
    """A namespace for each environment, and in those that are there and to stay, what a team needs in it."""
    team, observed = request["parent"], request["children"]["Namespace.v1"]
    names = [f"{team['metadata']['name']}-{environment}" for environment in team["spec"]["environments"]]
    ready = [name for name in names if "deletionTimestamp" not in observed.get(name, {"metadata": {"deletionTimestamp": ""}})["metadata"]]
    children = [namespace(team, name) for name in names] + [child for name in ready for child in (quota(team, name), members(team, name))]
    return {"status": {"environments": len(names), "ready": len(ready)}, "children": children}


def namespace(team: Json, name: str) -> Json:
    """An environment."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": team["metadata"]["name"]}}}


def quota(team: Json, namespace: str) -> Json:
    """How many Pods the team may have in an environment."""
    spec = {"hard": {"pods": str(team["spec"]["pods"])}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": namespace}, "spec": spec}


def members(team: Json, namespace: str) -> Json:
    """Who is at home in an environment.

    Only the namespace distinguishes it from what a hook of a namespaced parent would answer.
    """
    data = {"members": ", ".join(team["spec"]["members"])}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "team", "namespace": namespace}, "data": data}


HOOKS = {"/sync": sync}


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
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8095
    address = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    server = ThreadingHTTPServer((address, port), Hooks)
    print(f"serving hooks at http://{address}:{port}", flush=True)
    server.serve_forever()
