"""The smallest budget of a scenario, and what smaller ones cost."""
