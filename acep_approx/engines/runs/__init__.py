"""The runs engine: registers, strategies, budgets."""
