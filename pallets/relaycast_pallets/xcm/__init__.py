"""What messages need of a chain's state: accounts to withdraw from, a price for weight, a place for what is left."""
