"""The verbs, and what a terminal shows."""
