"""The protocol between reconciler and hook gateway."""
