"""The timestamp pallet: when a block was built."""
