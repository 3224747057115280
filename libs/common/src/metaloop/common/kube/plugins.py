"""Logins that need the official client's loaders: exec plugins, auth providers and merged kubeconfigs.

This is the only module that imports `kubernetes`. It is itself imported only when a kubeconfig needs it.
"""

from datetime import UTC, datetime
from pathlib import Path

import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import kube_config
from kubernetes.aio.config.config_exception import ConfigException

from metaloop.common.kube.errors import InvalidKubeconfig
from metaloop.common.kube.login import Login

_NEVER = datetime.max.replace(tzinfo=UTC)
_MALFORMED = (ConfigException, OSError, ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError)
"""How the official loaders fail. They validate little: an invalid kubeconfig may raise any of these."""


class OfficialKubeconfig:
    """One or more kubeconfig files. Remembers refreshed tokens, and when a plugin's credentials expire."""

    def __init__(self, paths: str) -> None:
        try:
            config = kube_config.KubeConfigMerger(paths).config
            if config is None:
                raise InvalidKubeconfig(f"there is no kubeconfig at {paths}")
            self._loader = kube_config.KubeConfigLoader(config_dict=config, config_base_path=None)  # pyright: ignore[reportArgumentType]
            user = config["users"].get_with_name(self._loader.current_context["context"].get("user"), safe=True)
            self._uses_plugin = bool(user and "exec" in user["user"])
        except _MALFORMED as problem:
            raise InvalidKubeconfig(f"{paths}: {type(problem).__name__}: {problem}") from problem

    async def load(self) -> Login:
        """Read the files again. Run the plugin again if its credentials have expired. Raises InvalidKubeconfig."""
        configuration = Configuration()
        try:
            await self._loader.load_and_set(configuration)
            if self._uses_plugin:
                self._check_plugin(configuration)
            return _login(configuration)
        except _MALFORMED as problem:
            raise InvalidKubeconfig(f"{type(problem).__name__}: {problem}") from problem

    def forget(self) -> None:
        """Make the next `load` run the plugin again."""
        if self._uses_plugin:
            for fetched in ("exec_plugin_expiry", "token", "cert_file", "key_file"):
                vars(self._loader).pop(fetched, None)

    def _check_plugin(self, configuration: Configuration) -> None:
        if not configuration.api_key.get("BearerToken") and not configuration.cert_file:
            raise InvalidKubeconfig("the exec plugin gave no credentials; the log says why")
        # As in client-go, credentials without an expiry are kept until the API server rejects them.
        if not hasattr(self._loader, "exec_plugin_expiry"):
            self._loader.exec_plugin_expiry = _NEVER


def _login(configuration: Configuration) -> Login:
    return Login(
        server_url=str(configuration.host),
        authorization=" ".join(configuration.api_key.get("BearerToken", "").split()),
        authority=_content(configuration.ssl_ca_cert),
        certificate=_content(configuration.cert_file),
        key=_content(configuration.key_file),
        verifies=bool(configuration.verify_ssl),
        server_hostname=configuration.tls_server_name,
        proxy_url=configuration.proxy or None,
    )


def _content(path: str | None) -> str:
    return Path(path).read_text() if path else ""
