"""Builders, a fake clock and polling, for tests only."""
