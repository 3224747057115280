"""Renders the objects of a WebApp: a namespace, configuration, a migration, servers with their Service, and a check.

Annotations say in which wave each object is applied. Jobs run before and after the servers are rolled out: their
manifests contain the version of the app, so that they run again for each version, and only then.
"""

import hashlib
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

PREFIX = "webapps.example.com"
FIRST, BEFORE, SERVERS, AFTER = -2, -1, 0, 1
"""The waves."""


def generate(request: Json) -> Json:
    """The objects of one WebApp, and its address for the status."""
    app, spec = request["name"], request["parent"]["spec"]
    space = f"{request['namespace']}-{app}"
    settings = {"greeting": spec["greeting"], "version": spec["version"]}
    children = [
        namespace(space),
        {**named("v1", "ConfigMap", "settings", space, FIRST), "data": settings},
        job("migrate", space, BEFORE, spec, script="echo migrating to $VERSION"),
        deployment(app, space, spec, settings),
        service(app, space),
        job("check", space, AFTER, spec, script=f"python3 -c \"import urllib.request as r; r.urlopen('http://{app}')\""),
    ]
    return {"children": children, "status": {"url": f"http://{app}.{space}"}}


def named(api_version: str, kind: str, name: str, namespace: str, wave: int, **settings: str) -> Json:
    """An object in a wave. Settings become annotations: `purge_order="0"`."""
    annotations = {f"{PREFIX}/apply-order": str(wave)}
    annotations |= {f"{PREFIX}/{key.replace('_', '-')}": value for key, value in settings.items()}
    metadata: Json = {"name": name, "annotations": annotations}
    return {"apiVersion": api_version, "kind": kind, "metadata": {**metadata, **({"namespace": namespace} if namespace else {})}}


def namespace(name: str) -> Json:
    """The namespace of everything else. It comes first and goes last."""
    return named("v1", "Namespace", name, "", FIRST)


def job(name: str, namespace: str, wave: int, spec: Json, *, script: str) -> Json:
    """A Job that runs once for each version, and is deleted once its wave is over."""
    version = {"name": "VERSION", "value": spec["version"]}
    container = {"name": name, "image": spec["image"], "command": ["sh", "-c", script], "env": [version]}
    pod = {"restartPolicy": "Never", "containers": [container]}
    own = named("batch/v1", "Job", name, namespace, wave, update_policy="recreate", purge_order=str(wave))
    template = {"metadata": {"labels": {"job": name}}, "spec": pod}
    return {**own, "spec": {"backoffLimit": 2, "template": template}}


def deployment(name: str, namespace: str, spec: Json, settings: Json) -> Json:
    """The servers. They are rolled out again if their settings change."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    container = {
        "name": "server",
        "image": spec["image"],
        "command": ["python3", "-m", "http.server", "8080", "--directory", "/settings"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/greeting", "port": "http"}, "periodSeconds": 1},
        "volumeMounts": [{"name": "settings", "mountPath": "/settings"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "settings", "configMap": {"name": "settings"}}]}
    template = {"metadata": {"labels": {"app": name}, "annotations": {"settings": digest}}, "spec": pod}
    selector = {"matchLabels": {"app": name}}
    own = named("apps/v1", "Deployment", name, namespace, SERVERS)
    return {**own, "spec": {"replicas": spec.get("replicas", 1), "selector": selector, "template": template}}


def service(name: str, namespace: str) -> Json:
    """The Service of the servers."""
    port = {"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}
    return {**named("v1", "Service", name, namespace, SERVERS), "spec": {"selector": {"app": name}, "ports": [port]}}


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
