"""Rolls a change out all at once: new Pods start beside the old ones, and get the traffic once all are ready.

Children are two ReplicaSets, blue and green, and a Service. The colour that the Service selects is the active one; the
other is idle, and has no Pods unless a change is on its way. Nothing is remembered but in the children themselves: the
Service says which colour is active, and each ReplicaSet carries the Pod template that it was made of.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

COLOR = "bluegreen.example.com/color"
MADE_OF = "bluegreen.example.com/template"
OTHER = {"blue": "green", "green": "blue"}


def sync(request: Json) -> Json:
    """Both ReplicaSets and the Service, as the next step of the rollout wants them; and in the status how far it is."""
    parent, children = request["parent"], request["children"]
    name, spec = parent["metadata"]["name"], parent["spec"]
    sets = {color: children["ReplicaSet.apps/v1"].get(f"{name}-{color}") for color in OTHER}
    active = active_color(children["Service.v1"].get(name))
    templates = {color: made_of(observed) or spec["template"] for color, observed in sets.items()}
    replicas = {active: spec["replicas"], OTHER[active]: 0}
    if templates[active] != spec["template"]:
        idle = OTHER[active]
        is_changed = templates[idle] != spec["template"]
        templates[idle] = spec["template"]
        # What is left of a former rollout goes before its ReplicaSet is given another template.
        replicas[idle] = 0 if is_changed and has_pods(sets[idle]) else spec["replicas"]
        if not is_changed and is_ready(sets[idle], spec["replicas"]):
            active = idle
    status = {
        "active": active,
        "activeReady": ready(sets[active]),
        "idleReady": ready(sets[OTHER[active]]),
        "rollingOut": templates[active] != spec["template"],
    }
    replica_sets = [replica_set(parent, color, templates[color], replicas[color]) for color in OTHER]
    return {"status": status, "children": [*replica_sets, service(parent, active)]}


def active_color(service: Json | None) -> str:
    """The colour that the Service selects; blue to begin with."""
    return service["spec"]["selector"][COLOR] if service else "blue"


def made_of(replica_set: Json | None) -> Json | None:
    """The template that a ReplicaSet was made of: as it was written, without what the API server added to it."""
    return json.loads(replica_set["metadata"]["annotations"][MADE_OF]) if replica_set else None


def is_ready(replica_set: Json | None, replicas: int) -> bool:
    """Whether all Pods of a ReplicaSet are there, made of its present template, and available."""
    if replica_set is None:
        return False
    status = replica_set.get("status", {})
    is_told = status.get("observedGeneration", 0) >= replica_set["metadata"].get("generation", 0)
    return is_told and status.get("replicas", 0) == status.get("availableReplicas", 0) == replicas


def has_pods(replica_set: Json | None) -> bool:
    """Whether there are any Pods of a ReplicaSet, or may be."""
    return replica_set is not None and (replica_set["spec"]["replicas"] > 0 or replica_set.get("status", {}).get("replicas", 0) > 0)


def ready(replica_set: Json | None) -> int:
    """How many Pods of a ReplicaSet are ready."""
    return replica_set.get("status", {}).get("readyReplicas", 0) if replica_set else 0


def replica_set(parent: Json, color: str, template: Json, replicas: int) -> Json:
    """The ReplicaSet of a colour."""
    labels = {**parent["spec"]["selector"]["matchLabels"], COLOR: color}
    metadata = {**template.get("metadata", {}), "labels": {**template.get("metadata", {}).get("labels", {}), **labels}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{parent['metadata']['name']}-{color}",
            "labels": labels,
            "annotations": {MADE_OF: json.dumps(template, sort_keys=True)},
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": parent["spec"].get("minReadySeconds", 0),
            "selector": {"matchLabels": labels},
            "template": {**template, "metadata": metadata},
        },
    }


def service(parent: Json, active: str) -> Json:
    """The Service, which sends its traffic to one colour."""
    labels = parent["spec"]["selector"]["matchLabels"]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": parent["metadata"]["name"], "labels": labels},
        "spec": {"selector": {**labels, COLOR: active}, "ports": parent["spec"]["ports"]},
    }


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
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8096
    address = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    server = ThreadingHTTPServer((address, port), Hooks)
    print(f"serving hooks at http://{address}:{port}", flush=True)
    server.serve_forever()
