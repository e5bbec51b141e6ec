"""JSON-RPC 2.0 as a Substrate node speaks it: the methods by group, and one session for each client."""
