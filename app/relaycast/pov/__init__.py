"""Proof-size snapshots, and the gate that compares a run with one."""
