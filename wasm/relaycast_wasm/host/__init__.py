"""What a runtime imports: one module for each group of host functions, under the names that they have in ``sp-io``."""
