"""Pure functions from a study's frames to its tables and tests."""
