"""The verbs of the command, one module for each group; what they print and return is the contract with the outside."""
