"""The worker's side: open a split, scale, share kernels, fit, predict, score, record."""
