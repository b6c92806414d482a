"""From what a user says to a checked study."""
