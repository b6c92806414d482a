"""Read and write the tables and records of a study on disk."""
