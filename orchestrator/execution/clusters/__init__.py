"""The kinds of clusters, one class each: how to start one, keep it scaled and close it."""
