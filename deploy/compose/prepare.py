"""Prepares a compose project: passwords, and a copy of the kubeconfig that processes without root's rights may read.

It runs once, as root and without a network, before everything else. Passwords that are there stay.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from metaloop.common.kube.provision import missing_from, new_token

KUBECONFIG = Path("/kubeconfig")
USERS = Path("/users.conf")
"""The users of NATS, with variables for their passwords."""
RUN = Path("/run/metaloop")
OWNED = (Path("/data"), Path("/run/targets"))
ACCOUNT = 65532
SERVICES = ("watcher", "reconciler", "hookgateway")
TRACES = "METALOOP_OTLP_ENDPOINT"
FILES = {"certificate-authority", "client-certificate", "client-key", "tokenFile"}


def main(what: str) -> None:
    """Write everything, or that traces are sent. Says what is wrong with the kubeconfig."""
    if what == "traces":
        send_traces()
        return
    text = KUBECONFIG.read_text()
    if problem := problem_of(text):
        sys.exit(f"kubeconfig: {problem}")
    write(RUN / "kubeconfig", text)
    if not (RUN / "users.conf").exists():
        for name, content in credentials(missing_from((), new_token=new_token)).items():
            write(RUN / name, content)
    for stale in Path("/run/targets").glob("*.json"):
        stale.unlink()
    for old in RUN.glob(f"*/{TRACES}"):
        old.unlink()
    for folder in OWNED:
        os.chown(folder, ACCOUNT, ACCOUNT)


def send_traces() -> None:
    """Have each service send its traces to Jaeger."""
    for service in SERVICES:
        write(RUN / service / TRACES, "http://127.0.0.1:4318")


def problem_of(kubeconfig: str) -> str:
    """Why a container cannot use this kubeconfig; empty if it can."""
    content = yaml.safe_load(kubeconfig)
    if not isinstance(content, dict) or not content.get("clusters"):
        return "it names no cluster"
    parts = [entry.get("cluster", {}) for entry in content["clusters"]] + [entry.get("user", {}) for entry in content.get("users", [])]
    if elsewhere := sorted(FILES & {key for part in parts for key in part or {}}):
        return f"{', '.join(elsewhere)} is in another file: write one by `kubectl config view --raw --flatten`, and name it in METALOOP_KUBECONFIG"
    return ""


def credentials(made: Mapping[str, str]) -> dict[str, str]:
    """The files with passwords: for NATS, and for each service."""
    users = USERS.read_text()
    for key, value in made.items():
        users = users.replace(f"${key.upper().replace('-', '_')}", value)
    files = {"users.conf": users}
    for service in ("watcher", "reconciler"):
        login = f"{made[f'nats-{service}-user']}:{made[f'nats-{service}-password']}"
        files[f"{service}/METALOOP_NATS_URL"] = f"nats://{login}@127.0.0.1:4222"
    for service in ("reconciler", "hookgateway"):
        files[f"{service}/METALOOP_GATEWAY_TOKEN"] = made["gateway"]
    return files


def write(file: Path, text: str) -> None:
    """Write a file that only root and our services may read."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o640)
    os.chown(file, 0, ACCOUNT)
    file.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1])
