"""Scripts that measure costs and print ratios measured side by side in one run."""
