"""Runs a Pod for each index from 0 to `completions - 1`, some of them at a time, and each again until it succeeds.

A Pod knows its index from its environment, `JOB_INDEX`. Pods that succeeded are kept, as a Job keeps them; one that
failed is left out of the answer, so it is deleted, and is asked for anew once it is gone.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]


def sync(request: Json) -> Json:
    """The Pods that succeeded, those that run, and as many new ones as may run beside them."""
    job, pods = request["parent"], request["children"]["Pod.v1"]
    phases = {index: phase(pods.get(f"{job['metadata']['name']}-{index}")) for index in range(job["spec"]["completions"])}
    succeeded = [index for index, phase in phases.items() if phase == "Succeeded"]
    active = [index for index, phase in phases.items() if phase in {"Pending", "Running", "Unknown"}]
    failed = [index for index, phase in phases.items() if phase == "Failed"]
    absent = [index for index, phase in phases.items() if phase == "Absent"]
    places = max(0, job["spec"]["parallelism"] - len(active) - len(failed))
    wanted = sorted(succeeded + active + absent[:places])
    status = {"succeeded": len(succeeded), "active": len(active), "done": len(succeeded) == job["spec"]["completions"]}
    return {"status": status, "children": [pod(job, index) for index in wanted]}


def phase(pod: Json | None) -> str:
    """What has become of a Pod."""
    return pod.get("status", {}).get("phase", "Pending") if pod else "Absent"


def pod(job: Json, index: int) -> Json:
    """The Pod of one index: the job's template, with the index in the environment of each container."""
    template = job["spec"]["template"]
    variable = {"name": "JOB_INDEX", "value": str(index)}
    containers = [{**container, "env": [*container.get("env", []), variable]} for container in template["spec"]["containers"]]
    labels = {**template.get("metadata", {}).get("labels", {}), "job-index": str(index)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{job['metadata']['name']}-{index}", "labels": labels},
        "spec": {"restartPolicy": "Never", **template["spec"], "containers": containers},
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
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8097
    address = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    server = ThreadingHTTPServer((address, port), Hooks)
    print(f"serving hooks at http://{address}:{port}", flush=True)
    server.serve_forever()
