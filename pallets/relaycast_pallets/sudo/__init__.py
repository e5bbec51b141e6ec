"""The sudo pallet: one account that calls as governance."""
