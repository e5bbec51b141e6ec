"""Proof X-ray: every node of a proof, decoded."""
