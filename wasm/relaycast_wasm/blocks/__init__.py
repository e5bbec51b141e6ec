"""What blocks of real runtimes are made of: inherents, extrinsics and results, collations, proofs by storage item."""
