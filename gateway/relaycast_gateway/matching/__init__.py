"""Which events a subscription selects: predicates that every dialect compiles to."""
