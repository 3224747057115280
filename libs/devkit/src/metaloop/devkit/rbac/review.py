"""Asks the API server what an account may do, by SubjectAccessReviews."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from metaloop.common.json import JsonObject, JsonValue, dumps, loads
from metaloop.common.kube.client import KubeClient
from metaloop.devkit.rbac.rules import Need, Service

_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
DANGEROUS: tuple[Need, ...] = (
    Need(group="", resource="secrets", verbs=("list",)),
    Need(group="", resource="pods/exec", verbs=("create",)),
    Need(group="", resource="users", verbs=("impersonate",)),
    Need(group="", resource="nodes/proxy", verbs=("get",)),
    Need(group="", resource="serviceaccounts/token", verbs=("create",)),
    Need(group="rbac.authorization.k8s.io", resource="clusterroles", verbs=("bind", "escalate")),
    Need(group="rbac.authorization.k8s.io", resource="clusterrolebindings", verbs=("create",)),
    Need(group="admissionregistration.k8s.io", resource="validatingwebhookconfigurations", verbs=("delete",)),
)
"""What gives more than it seems. A service should have it only where a controller needs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What an account may be allowed to do."""

    account: str
    """Its full name, as `system:serviceaccount:metaloop:watcher`."""
    verb: str
    group: str
    resource: str
    """With its subresource, as `things/status`."""
    namespace: str = ""
    """Empty: in all namespaces, or to a cluster-scoped object."""
    name: str = ""
    """Empty: to any object."""

    def __str__(self) -> str:
        """One line for people."""
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource} {self.group}{where} by {self.account.rpartition(':')[2]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A verb on a resource that a service lacks, or has for no controller."""

    service: Service
    verb: str
    group: str
    resource: str
    is_missing: bool

    def __str__(self) -> str:
        """One line for people."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.service} {'may not' if self.is_missing else 'need not, but may'} {self.verb} {resource}"


async def review(kube: KubeClient, needs: Mapping[Service, Sequence[Need]], *, namespace: str) -> list[Finding]:
    """What the services' accounts in a namespace lack, and which dangerous things they may do needlessly."""
    found: list[Finding] = []
    for service, needed in needs.items():
        account = f"system:serviceaccount:{namespace}:{service}"
        needless = _without(DANGEROUS, needed)
        found += [one for one in _findings(service, needed, is_missing=True) if not await _may(kube, account, one)]
        found += [one for one in _findings(service, needless, is_missing=False) if await _may(kube, account, one)]
    return found


def _findings(service: Service, needs: Iterable[Need], *, is_missing: bool) -> list[Finding]:
    """What would be found if every one of these were missing, or there. Needs with names are left out."""
    return [
        Finding(service=service, verb=verb, group=need.group, resource=need.resource, is_missing=is_missing)
        for need in needs
        if not need.names
        for verb in need.verbs
    ]


def _without(needs: Iterable[Need], needed: Iterable[Need]) -> list[Need]:
    used = {(need.group, need.resource, verb) for need in needed for verb in need.verbs}
    return [
        Need(group=need.group, resource=need.resource, verbs=verbs)
        for need in needs
        if (verbs := tuple(verb for verb in need.verbs if (need.group, need.resource, verb) not in used))
    ]


async def may(kube: KubeClient, access: Access) -> bool:
    """Whether the API server allows an access."""
    resource, _, subresource = access.resource.partition("/")
    attributes: JsonObject = {
        "verb": access.verb,
        "group": access.group,
        "resource": resource,
        "subresource": subresource,
        "namespace": access.namespace,
        "name": access.name,
    }
    body: JsonObject = {"spec": {"user": access.account, "groups": _groups_of(access.account), "resourceAttributes": attributes}}
    answer: JsonObject = loads(await kube.request("POST", _REVIEWS, body=dumps(body)))
    status = answer.get("status")
    return isinstance(status, dict) and status.get("allowed") is True


async def _may(kube: KubeClient, account: str, asked: Finding) -> bool:
    return await may(kube, Access(account=account, verb=asked.verb, group=asked.group, resource=asked.resource))


def _groups_of(account: str) -> list[JsonValue]:
    """The groups that the API server puts an account into."""
    namespace = account.split(":")[2]
    return ["system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
