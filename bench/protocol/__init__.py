"""The job protocol without a cluster: what it costs (`cpu`), and that it keeps its promises under faults (`chaos`)."""
