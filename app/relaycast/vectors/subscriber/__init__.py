"""Vectors of the subscriber: blocks of a parachain that subscribes, each with all that its pass starts from."""
