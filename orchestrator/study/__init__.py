"""Data types of a study (Study, Arm, Candidate, Path, …). This package imports no other package of ours."""
