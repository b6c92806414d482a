"""Train on a worker: open a split, scale, share kernels, fit, predict, score and record."""
