"""Finds the control-plane programs, or gets them: one folder that holds all of them, usable as $KUBEBUILDER_ASSETS."""

from metaloop.devkit.assets.cache import ensure, ensure_jaeger
from metaloop.devkit.assets.programs import PROGRAMS

__all__ = ["PROGRAMS", "ensure", "ensure_jaeger"]
