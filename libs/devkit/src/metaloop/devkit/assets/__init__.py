"""Finds or fetches the control-plane programs, in one folder that can be used as $KUBEBUILDER_ASSETS."""

from metaloop.devkit.assets.cache import ensure, ensure_helm, ensure_jaeger
from metaloop.devkit.assets.programs import PROGRAMS

__all__ = ["PROGRAMS", "ensure", "ensure_helm", "ensure_jaeger"]
