"""The metacontroller.k8s.io types, parsed once at the edge and frozen."""

GROUP = "metacontroller.k8s.io"
API_VERSION = "metacontroller.k8s.io/v1alpha1"
LAST_APPLIED_ANNOTATION = "metacontroller.k8s.io/last-applied-configuration"
