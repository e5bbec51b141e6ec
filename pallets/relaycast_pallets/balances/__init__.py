"""The balances pallet: free and held balances of accounts."""
