"""Turns changes in the cluster into reconcile jobs; decides nothing about children."""
