"""The broadcaster pallet: relay-chain storage that parachains publish into."""
