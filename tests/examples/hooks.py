"""The hooks of the examples, as functions: what each makes of a request."""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

EXAMPLES = Path(__file__).parents[2] / "examples"


@cache
def hook_module(example: str) -> ModuleType:
    """The hook of an example, imported without being served."""
    spec = importlib.util.spec_from_file_location(f"hook_of_{example.replace('-', '_')}", EXAMPLES / example / "hook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names(children: list[Json], kind: str) -> list[str]:
    """The names of the children of one kind, with their namespaces where they have any, in the answer's order."""
    found = [child["metadata"] for child in children if child["kind"] == kind]
    return [f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else metadata["name"] for metadata in found]


def observed(*metadata: Json) -> Json:
    """Objects as a request shows them, by their names."""
    return {each["name"]: {"metadata": each} for each in metadata}


def pod(name: str, *, ready: bool = True, going: bool = False, phase: str = "Running") -> Json:
    """A Pod as the cluster has it."""
    metadata = {"name": name, **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {})}
    return {"metadata": metadata, "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}}
