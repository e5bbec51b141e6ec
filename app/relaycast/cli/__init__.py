"""The command line, one module for each verb; what verbs print and return is the contract with the outside."""
