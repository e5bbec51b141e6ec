"""A node: the emulated chains behind Substrate's JSON-RPC, so that clients talk to them as to real ones."""
