"""The scenarios of the examples."""

from collections.abc import Mapping
from typing import Any

from metaloop.devkit.demo.scenario import Scenario
from metaloop.devkit.demo.scenarios import (
    bluegreen,
    catset,
    cluster_parent,
    configmap_propagation,
    configmap_transform,
    global_configmap,
    hello,
    indexed_job,
    operator_with_crd,
    secret_propagation,
    service_per_pod,
    snapshot_schedule,
    webapp,
)

SCENARIOS: Mapping[str, Scenario[Any]] = {
    "hello": hello.SCENARIO,
    "service-per-pod": service_per_pod.SCENARIO,
    "configmap-propagation": configmap_propagation.SCENARIO,
    "secret-propagation": secret_propagation.SCENARIO,
    "global-configmap": global_configmap.SCENARIO,
    "cluster-parent": cluster_parent.SCENARIO,
    "bluegreen": bluegreen.SCENARIO,
    "catset": catset.SCENARIO,
    "indexed-job": indexed_job.SCENARIO,
    "configmap-transform": configmap_transform.SCENARIO,
    "snapshot-schedule": snapshot_schedule.SCENARIO,
    "webapp": webapp.SCENARIO,
    "operator-with-crd": operator_with_crd.SCENARIO,
}
"""By the name of the example, the simplest first."""
