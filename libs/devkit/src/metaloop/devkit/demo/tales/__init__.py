"""The stories of the examples, by the examples' names."""

from collections.abc import Mapping
from typing import Any

from metaloop.devkit.demo.stage import Tale
from metaloop.devkit.demo.tales import (
    bluegreen,
    catset,
    cluster_parent,
    configmap_propagation,
    global_configmap,
    hello,
    indexed_job,
    secret_propagation,
    service_per_pod,
)

TALES: Mapping[str, Tale[Any]] = {
    "hello": hello.TALE,
    "service-per-pod": service_per_pod.TALE,
    "configmap-propagation": configmap_propagation.TALE,
    "secret-propagation": secret_propagation.TALE,
    "global-configmap": global_configmap.TALE,
    "cluster-parent": cluster_parent.TALE,
    "bluegreen": bluegreen.TALE,
    "catset": catset.TALE,
    "indexed-job": indexed_job.TALE,
}
"""In the order in which they are best heard."""
