"""Data types of a study (Study, Arm, Candidate, Trial, …). This package imports no other package of ours."""
