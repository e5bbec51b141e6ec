"""Scenarios at work: one simulation, its files, batches of them on Spark, and sweeps."""
