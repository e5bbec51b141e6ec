"""Canisters over HTTP: the wire between processes, and a host for canisters in a process of their own."""
