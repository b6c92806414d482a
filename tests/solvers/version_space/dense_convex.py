"""Dense convex solvers that share nothing with the package: a quadratic program, and a concave maximum."""

import numpy as np


def quadratic_program(Q, c, A, b, G, h, tol=1e-12):
    """Minimise ½ xᵀQx + cᵀx subject to Ax = b, Gx ≤ h, by a primal-dual interior-point method (Mehrotra)."""
    n, p, m = c.size, b.size, h.size
    x, nu, z = np.zeros(n), np.zeros(p), np.ones(m)
    s = np.maximum(1.0, h - G @ x)
    for _ in range(200):
        dual, primal, slack = Q @ x + c + A.T @ nu + G.T @ z, A @ x - b, G @ x + s - h
        mu = s @ z / m
        if mu < tol * 1e-3 or not np.isfinite(mu):
            break
        scale = 1.0 + abs(x @ Q @ x) + abs(c @ x)
        if max(np.abs(dual).max(), np.abs(primal).max(initial=0), np.abs(slack).max(), mu) < tol * scale:
            break
        matrix = np.block([[Q + (G.T * (z / s)) @ G + 1e-14 * np.eye(n), A.T], [A, np.zeros((p, p))]])
        # Without scales, least squares would leave out directions where z/s is huge elsewhere.
        scales = np.concatenate([1.0 / np.sqrt(matrix.diagonal()[:n]), np.ones(p)])
        matrix = scales[:, None] * matrix * scales

        def direction(target, s=s, z=z, dual=dual, primal=primal, slack=slack, matrix=matrix, scales=scales):
            right = -dual + G.T @ ((z * s - target) / s - z * slack / s)
            right = scales * np.concatenate([right, -primal])
            step = scales * np.linalg.lstsq(matrix, right, rcond=None)[0]
            dx, dnu = step[:n], step[n:]
            ds = -slack - G @ dx
            return dx, dnu, ds, (target - z * s - z * ds) / s

        dx, dnu, ds, dz = direction(0.0)
        best = _to_boundary(s, ds), _to_boundary(z, dz)
        sigma = ((s + best[0] * ds) @ (z + best[1] * dz) / (s @ z)) ** 3
        dx, dnu, ds, dz = direction(sigma * mu - ds * dz)
        t = 0.995 * min(_to_boundary(s, ds), _to_boundary(z, dz))
        x, nu, s, z = x + t * dx, nu + t * dnu, s + t * ds, z + t * dz
    return x, float(0.5 * x @ Q @ x + c @ x)


def _to_boundary(value, step):
    """Return the longest step that keeps all values positive, at most 1."""
    falling = step < 0
    return min(1.0, (-value[falling] / step[falling]).min(initial=1.0))
