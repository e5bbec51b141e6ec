"""Scenarios: their files, what they mean, and the publications and messages that follow from them."""
