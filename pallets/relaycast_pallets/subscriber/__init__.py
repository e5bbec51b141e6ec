"""The subscriber pallet: relay state proofs pruned and verified, and callbacks for what changed."""
