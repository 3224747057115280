"""A real Kubernetes control plane for one run: etcd, kube-apiserver and kube-controller-manager, on loopback only."""

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from metaloop.devkit import probes
from metaloop.devkit.certs import Authority
from metaloop.devkit.kubeconfig import Kubeconfig
from metaloop.devkit.ports import LOOPBACK
from metaloop.devkit.processes import Daemon, Program, group, start_on_free_port
from metaloop.devkit.workdir import private_folder

ADMIN = "admin"
_ADMINS = "system:masters"
_SERVING_HOSTS = (LOOPBACK, "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")

# Unix sockets in the run's own folder cannot collide with another run's ports, and keep out the machine's other users,
# whom etcd would let in without credentials. They are relative to the folder because the path of a socket is limited to
# about 100 characters. They look like host and port because etcd parses them as addresses.
_ETCD_SOCKET = "etcd:2379"
_ETCD_CLIENTS, _ETCD_PEERS = f"unix://{_ETCD_SOCKET}", "unix://etcd:2380"

_FRONT_PROXY = "front-proxy"
"""The name in the client certificate of an API server that forwards requests to an aggregated one."""

# One line for each request that is received, and one for each that is answered: who did what to which object.
_AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted]
rules:
- level: Metadata
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """A running control plane. Each of its daemons can be killed, paused and restarted."""

    etcd: Daemon
    apiserver: Daemon
    controller_manager: Daemon
    server_url: str
    kubeconfig_path: Path
    """The administrator's kubeconfig, with a client certificate."""
    admin_token: str
    """A bearer token of the same administrator."""
    ca_path: Path
    audit_log: Path | None
    """One JSON event a line for each request that is received or answered; None if `start` was given no path for it."""
    files: "_Files" = field(repr=False)
    """The files and command lines of its programs."""

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """Its daemons, in the order in which they were started."""
        return (self.etcd, self.apiserver, self.controller_manager)

    @staticmethod
    @asynccontextmanager
    async def start(
        assets_dir: Path, workdir: Path, *, audit_log: Path | None = None, apiserver_flags: Sequence[str] = ()
    ) -> AsyncIterator["ControlPlane"]:
        """A control plane that is ready, for as long as the block lasts; its data are in `workdir`."""
        files = _Files(assets=assets_dir, folder=private_folder(workdir, "controlplane"), audit_log=audit_log)
        files.prepare()
        async with group() as daemons:
            etcd = await daemons.start(files.etcd())
            apiserver, port = await start_on_free_port(
                daemons, lambda port: files.apiserver(port, flags=(*files.audit_flags(), *apiserver_flags))
            )
            files.write_kubeconfigs(port)
            controller_manager, _ = await start_on_free_port(daemons, files.controller_manager)
            yield ControlPlane(
                etcd=etcd,
                apiserver=apiserver,
                controller_manager=controller_manager,
                server_url=_url(port),
                kubeconfig_path=files.kubeconfig_of(ADMIN),
                admin_token=files.admin_token,
                ca_path=files.ca_path,
                audit_log=audit_log,
                files=files,
            )

    @asynccontextmanager
    async def aggregated(self) -> AsyncIterator["ControlPlane"]:
        """The same control plane with a second API server in place of the first, for as long as the block lasts.

        The second one has objects of its own, and trusts the first one to say who sent a forwarded request.
        """
        async with group() as daemons:
            apiserver, port = await start_on_free_port(daemons, self.files.aggregated_apiserver)
            yield replace(self, apiserver=apiserver, server_url=_url(port), audit_log=None)


class _Files:
    """The files of one control plane, and the command lines that use them."""

    def __init__(self, *, assets: Path, folder: Path, audit_log: Path | None) -> None:
        self._assets = assets.absolute()
        self._folder = folder
        self._audit_log = audit_log
        self._authority = Authority("metaloop-devkit")
        self._front_proxies = Authority("metaloop-devkit-front-proxies")
        self.admin_token = secrets.token_urlsafe(24)
        self.ca_path = folder / "ca.crt"

    def prepare(self) -> None:
        """Write the keys, certificates and policies that the programs read."""
        self.ca_path.write_bytes(self._authority.certificate_pem)
        self._authority.serving("kube-apiserver", hosts=_SERVING_HOSTS).write(self._folder / "serving")
        self._front_proxies.client(_FRONT_PROXY).write(self._folder / _FRONT_PROXY)
        self._front_proxy_ca.write_bytes(self._front_proxies.certificate_pem)
        # Tokens of service accounts are signed with this key, and checked with the public key of its certificate.
        self._authority.client("service-accounts").write(self._folder / "service-accounts")
        self._secret("tokens.csv", f"{self.admin_token},{ADMIN},{ADMIN},{_ADMINS}\n")
        if self._audit_log:
            (self._folder / "audit-policy.yaml").write_text(_AUDIT_POLICY)

    def write_kubeconfigs(self, port: int) -> None:
        """Write the kubeconfigs of the administrator and of the controller manager."""
        for user in (ADMIN, "system:kube-controller-manager"):
            Kubeconfig(
                server_url=_url(port),
                ca_pem=self._authority.certificate_pem,
                user=user,
                credentials=self._authority.client(user, group=_ADMINS),
            ).write(self.kubeconfig_of(user))

    def kubeconfig_of(self, user: str) -> Path:
        """The path of a user's kubeconfig."""
        return self._folder / f"{user.rpartition(':')[2]}.kubeconfig"

    def etcd(self) -> Program:
        """Etcd without fsync: its data end with the run."""
        return self._program(
            "etcd",
            "--name=devkit",
            f"--data-dir={self._folder / 'data'}",
            "--unsafe-no-fsync",
            "--log-level=warn",
            f"--listen-client-urls={_ETCD_CLIENTS}",
            f"--advertise-client-urls={_ETCD_CLIENTS}",
            f"--listen-peer-urls={_ETCD_PEERS}",
            f"--initial-advertise-peer-urls={_ETCD_PEERS}",
            f"--initial-cluster=devkit={_ETCD_PEERS}",
            ready=probes.unix_accepts(self._folder / _ETCD_SOCKET),
        )

    def aggregated_apiserver(self, port: int) -> Program:
        """An API server that another one forwards requests to; namespaces exist in the other one only."""
        flags = (
            "--etcd-prefix=/aggregated",
            "--disable-admission-plugins=NamespaceLifecycle",
            f"--requestheader-client-ca-file={self._front_proxy_ca}",
            f"--requestheader-allowed-names={_FRONT_PROXY}",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        )
        return replace(self.apiserver(port, flags=flags), name="aggregated-apiserver")

    def apiserver(self, port: int, *, flags: Sequence[str]) -> Program:
        """An API server with RBAC, client certificates and tokens, as in production; Pods need no service account."""
        return self._program(
            "kube-apiserver",
            f"--etcd-servers={_ETCD_CLIENTS}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            f"--tls-cert-file={self._folder / 'serving.crt'}",
            f"--tls-private-key-file={self._folder / 'serving.key'}",
            f"--client-ca-file={self.ca_path}",
            f"--token-auth-file={self._folder / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={self._folder / 'service-accounts.crt'}",
            f"--service-account-signing-key-file={self._folder / 'service-accounts.key'}",
            "--disable-admission-plugins=ServiceAccount",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",  # it would refuse a loopback address as an endpoint
            "--allow-privileged=true",
            "--profiling=false",
            f"--proxy-client-cert-file={self._folder / _FRONT_PROXY}.crt",
            f"--proxy-client-key-file={self._folder / _FRONT_PROXY}.key",
            *flags,
            ready=probes.http_ok(f"{_url(port)}/readyz", ca=self.ca_path),
        )

    def controller_manager(self, port: int) -> Program:
        """All of Kubernetes' own controllers, as the garbage collector and those of namespaces and service accounts."""
        kubeconfig = self.kubeconfig_of("kube-controller-manager")
        return self._program(
            "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            f"--tls-cert-file={self._folder / 'serving.crt'}",
            f"--tls-private-key-file={self._folder / 'serving.key'}",
            "--leader-elect=false",
            f"--service-account-private-key-file={self._folder / 'service-accounts.key'}",
            f"--root-ca-file={self.ca_path}",
            "--profiling=false",
            ready=probes.http_ok(f"{_url(port)}/healthz", ca=self.ca_path),
        )

    @property
    def _front_proxy_ca(self) -> Path:
        return self._folder / f"{_FRONT_PROXY}-ca.crt"

    def audit_flags(self) -> tuple[str, ...]:
        """The flags for the audit log, if there is to be one."""
        if self._audit_log is None:
            return ()
        return (f"--audit-policy-file={self._folder / 'audit-policy.yaml'}", f"--audit-log-path={self._audit_log.absolute()}")

    def _program(self, name: str, *flags: str, ready: probes.Probe) -> Program:
        return Program(name=name, argv=(str(self._assets / name), *flags), ready=ready, folder=self._folder)

    def _secret(self, name: str, text: str) -> None:
        path = self._folder / name
        path.touch(mode=0o600)
        path.write_text(text)


def _url(port: int) -> str:
    return f"https://{LOOPBACK}:{port}"
