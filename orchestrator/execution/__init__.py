"""Back ends that run batches: this process, or the workers of a cluster."""
