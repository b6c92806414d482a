"""How rows are split."""
