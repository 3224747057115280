"""Whose a job stream is: a stream carries the UID of its cluster in its metadata.

Two clusters on one NATS server must not share a stream: the workers of one would take the jobs of the other, and create
its children in the wrong cluster. `refusal_of` decides by the configuration of a stream that exists whether it may be
used; the rules are:

- a stream of our cluster is ours;
- a stream without a cluster is ours if it is configured as a job stream is: an older version made it, or a service that
  may not read its cluster's UID;
- a service that doesn't know its own cluster can't tell, and uses what is there;
- everything else belongs to somebody else, and is neither used nor changed.

A claim names its worker's cluster, too: so whatever happens to a stream, no worker is granted a lease by another
cluster's watcher.
"""

from metaloop.common.json import JsonObject, is_object

CLUSTER_KEY = "metaloop.dev/cluster"
"""Where the metadata of a stream name its cluster."""
_REFUSED = b"\x00cluster"
"""The answer to a claim of another cluster's worker begins so, and ends in the watcher's cluster; no JSON does."""
_SERVERS_OWN = "_nats."
"""Metadata that the server adds itself, and takes from nobody, begin so."""
_UNMISTAKABLE = ("subjects", "retention", "max_msgs_per_subject", "discard", "discard_new_per_subject")
"""What every version of ours configured alike, and hardly anybody else does."""
_REMEDY = "give this cluster's services a METALOOP_NATS_PREFIX of their own"


def refusal_of(found: JsonObject, wanted: JsonObject) -> str:
    """Why the stream that exists as `found` must not be made `wanted`; empty where it is ours."""
    ours, theirs = cluster_of(wanted), cluster_of(found)
    if theirs:
        return other_cluster(str(wanted["name"]), ours=ours, theirs=theirs) if ours and ours != theirs else ""
    if any(found.get(field) != wanted[field] for field in _UNMISTAKABLE):
        return f"the stream {wanted['name']} on this NATS server is not a job stream of Metaloop: {_REMEDY}"
    return ""


def other_cluster(stream: str, *, ours: str, theirs: str) -> str:
    """What to tell about a stream of another cluster: both clusters, and what helps."""
    return (
        f"the job stream {stream} on this NATS server belongs to the cluster {theirs}, and this service to the cluster {ours} "
        f"(the UIDs of their namespaces kube-system): {_REMEDY}, or delete the stream if that cluster is gone"
    )


def is_foreign(theirs: str, *, ours: str) -> bool:
    """Whether a claim is of another cluster's worker. Nobody knows where one of the two clusters is unknown."""
    return bool(ours and theirs) and theirs != ours


def claim_refusal(ours: str) -> bytes:
    """What a watcher of the cluster `ours` answers to a worker of another one."""
    return _REFUSED + ours.encode()


def refusing_cluster(reply: bytes) -> str:
    """The cluster of the watcher that answered a claim by `claim_refusal`; empty for every other reply."""
    return reply[len(_REFUSED) :].decode() if reply.startswith(_REFUSED) else ""


def keeping_owner(wanted: JsonObject, found: JsonObject) -> JsonObject:
    """`wanted`, with the metadata of `found` that it doesn't set itself: without a cluster of ours, theirs stays."""
    kept = {key: value for key, value in _metadata(found).items() if not key.startswith(_SERVERS_OWN)}
    return {**wanted, "metadata": {**kept, **_metadata(wanted)}}


def cluster_of(config: JsonObject) -> str:
    """The UID of the cluster whose stream this is; empty where it doesn't say."""
    return str(_metadata(config).get(CLUSTER_KEY, ""))


def _metadata(config: JsonObject) -> JsonObject:
    metadata = config.get("metadata")
    return metadata if is_object(metadata) else {}
