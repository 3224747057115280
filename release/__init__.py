"""What a release is made of: one version everywhere, and the files that are published."""
