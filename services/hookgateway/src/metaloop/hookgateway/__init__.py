"""Calls users' webhooks for the reconciler, and trusts nothing that they return."""
