"""What every pallet stands on: origins, calls, weights, events, and a state with typed storage."""
