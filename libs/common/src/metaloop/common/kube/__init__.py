"""The only place that imports `kubernetes`: client, stream, discovery, lease."""
