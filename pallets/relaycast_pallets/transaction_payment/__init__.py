"""The transaction payment pallet: what an extrinsic costs, and who pays it."""
