"""Newton's method on the free weights of a block: exact where `solvers.smo.block_steps` needs many steps.

With all other weights fixed, the objective is minimised over the free ones on ``Σ β = 0``. If the minimum
lies outside the box, the point stops at the first bound. That weight is removed from the factor by Givens
rotations, and the minimisation continues over the others. It is feasible and monotone.
"""

import numpy as np

from solvers.common.compile import inlined, inner, njit
from solvers.common.reductions import dot
from solvers.gram.block import gather_values, sum_of_rows

# Smallest pivot, as a share of its diagonal entry. A sample with a smaller pivot depends on those before it,
# and keeps its weight.
MIN_PIVOT = 1e-9
# The same, in roundings of the type of the block.
NOISE_ROUNDINGS = 8.0


@inner
def newton_cost(n, m):
    """Return the cost of one Newton step, in nanoseconds of a 2025 core.

    Parameters
    ----------
    n : int
        Number of free weights.
    m : int
        Number of samples of the block.

    Returns
    -------
    float
        Expected cost, in nanoseconds.
    """
    return 2000.0 + n * (0.12 * m + 60.0 + n * (1.5 + 0.06 * n))


@inner
def find_free(beta, low, high, free):
    """Write the samples whose weights lie between their bounds to ``free``.

    Parameters
    ----------
    beta, low, high : arrays (m,)
        Signed weights, and bounds.
    free : int64 array (m,)
        Receives the indices of the samples, ascending.

    Returns
    -------
    int
        Number of these samples.
    """
    n = 0
    for t in range(beta.size):
        if low[t] < beta[t] < high[t]:
            free[n] = t
            n += 1
    return n


@njit
def free_weights(beta, low, high):
    """Return the samples whose weights lie between their bounds.

    Parameters
    ----------
    beta, low, high : arrays (m,)
        Signed weights, and bounds.

    Returns
    -------
    int64 array
        Indices of the samples, ascending.
    """
    free = np.empty(beta.size, np.int64)
    return free[: find_free(beta, low, high, free)]


@inlined
def factorise(A, min_share, smallest, kept):
    """Overwrite the upper triangle of ``A`` by U with ``UᵀU = A``.

    Rows and columns whose pivots are too small are removed, and the others move up.

    Parameters
    ----------
    A : array (n, n), float64, C-contiguous
        Matrix whose upper triangle is given.
    min_share : float
        Smallest pivot, as a share of its diagonal entry.
    smallest : array (n,)
        Scratch memory, overwritten.
    kept : int64 array (n,)
        Receives the indices of the remaining rows of ``A``.

    Returns
    -------
    rank : int
        Number of the remaining rows.
    """
    n = A.shape[0]
    for k in range(n):
        smallest[k] = min_share * A[k, k]
    rank = np.int64(0)  # for a constant, numba would compile the callees a second time
    for k in range(n):
        row = A[k]
        whole = rank - rank % 4
        for a in range(0, whole, 4):
            u0, u1, u2, u3 = A[kept[a]], A[kept[a + 1]], A[kept[a + 2]], A[kept[a + 3]]
            f0, f1, f2, f3 = u0[k], u1[k], u2[k], u3[k]
            for j in range(k, n):
                row[j] -= f0 * u0[j] + f1 * u1[j] + (f2 * u2[j] + f3 * u3[j])
        for a in range(whole, rank):
            u0 = A[kept[a]]
            f0 = u0[k]
            for j in range(k, n):
                row[j] -= f0 * u0[j]
        if not row[k] > smallest[k]:
            continue
        kept[rank] = k
        rank += 1
        scale = 1.0 / np.sqrt(row[k])
        for j in range(k, n):
            row[j] *= scale
    if rank < n:
        for a in range(rank):
            for b in range(a, rank):
                A[a, b] = A[kept[a], kept[b]]
    return rank


@inner
def solve_transposed(U, n, b):
    """Overwrite ``b`` by ``U⁻ᵀ b`` for the first n rows of U.

    Parameters
    ----------
    U : array (n or more, n or more)
        Upper triangle.
    n : int
        Number of rows.
    b : array (n or more,)
        Right side, replaced by the solution.
    """
    for k in range(n):
        row = U[k]
        b[k] /= row[k]
        x = b[k]
        for j in range(k + 1, n):
            b[j] -= x * row[j]


@inner
def solve_upper(U, n, b):
    """Overwrite ``b`` by ``U⁻¹ b`` for the first n rows of U.

    Parameters
    ----------
    U : array (n or more, n or more)
        Upper triangle.
    n : int
        Number of rows.
    b : array (n or more,)
        Right side, replaced by the solution.
    """
    for k in range(n - 1, -1, -1):
        row = U[k]
        b[k] = (b[k] - dot(row[k + 1 : n], b[k + 1 : n])) / row[k]


@inner
def leave_out(U, n, p, a, b):
    """Change a factor of n rows into that of all rows but the p-th.

    Parameters
    ----------
    U : array (n or more, n or more)
        Upper triangle, changed in place.
    n : int
        Number of rows.
    p : int
        Index of the row to remove.
    a, b : arrays (n or more,)
        Vectors ``U⁻ᵀ x``, changed in the same way.
    """
    for k in range(n):
        row = U[k]
        for j in range(max(k, p + 1), n):
            row[j - 1] = row[j]
    for k in range(p, n - 1):
        upper, lower = U[k], U[k + 1]
        # Column k has one entry below the diagonal, which was the diagonal entry of the next row.
        length = np.sqrt(upper[k] * upper[k] + lower[k] * lower[k])
        cosine, sine = upper[k] / length, lower[k] / length
        for j in range(k, n - 1):
            x, y = upper[j], lower[j]
            upper[j] = cosine * x + sine * y
            lower[j] = cosine * y - sine * x
        a[k], a[k + 1] = cosine * a[k] + sine * a[k + 1], cosine * a[k + 1] - sine * a[k]
        b[k], b[k + 1] = cosine * b[k] + sine * b[k + 1], cosine * b[k + 1] - sine * b[k]


@njit(allocates=False)
def longest_step(weights, low, high, members, n, direction):
    """Return the longest step ≤ 1 within the bounds.

    Parameters
    ----------
    weights, low, high : arrays (m,)
        Signed weights, and bounds.
    members : int64 array (n or more,)
        Samples whose weights move.
    n : int
        Number of these samples.
    direction : array (n or more,)
        Change of their weights for a step of 1.

    Returns
    -------
    step : float
        Length of the step.
    blocker : int
        Index in `members` of the weight that ends it, or −1.
    """
    step, blocker = 1.0, -1
    for k in range(n):
        move, t = direction[k], members[k]
        if move != 0.0:
            distance = (high[t] if move > 0.0 else low[t]) - weights[t]
            if distance / move < step:
                step, blocker = distance / move, k
    return max(step, 0.0), blocker


@inner(allocates=True)
def newton_on_free(K, shift, inverse_C, F, beta, low, high, max_rounds, vectors, indices):
    """Minimise over the free weights; some of them may end at their bounds.

    Parameters
    ----------
    K : array (m, m), float32 or float64, C-contiguous
        Kernel values without labels, less `shift`.
    shift : float
        Value that was subtracted from the kernel, and is added before a factor is computed.
    inverse_C : array (m,)
        1/C of each sample for the L2 loss, 0 for the L1 loss.
    F, beta : arrays (m,), changed in place
        Gradient and signed weights.
    low, high : arrays (m,)
        Bounds of the weights.
    max_rounds : int
        Number of Newton rounds after which the loop stops.
    vectors : array (6, m)
        Scratch memory, overwritten.
    indices : int64 array (2, m)
        Scratch memory, overwritten.

    Returns
    -------
    rounds : int
        Number of directions: one for each weight that ended at a bound, and the last one.
    """
    free, members = indices[0], indices[1]
    n = find_free(beta, low, high, free)
    factor = np.empty((n, n))
    return minimise_on_free(
        K, shift, inverse_C, F, beta, low, high, max_rounds, free[:n], factor, vectors, members
    )


@inner
def minimise_on_free(K, shift, inverse_C, F, beta, low, high, max_rounds, free, A, vectors, members):
    """Run `newton_on_free` on given free weights.

    Parameters
    ----------
    K, shift, inverse_C, F, beta, low, high, max_rounds
        As in `newton_on_free`.
    free : int64 array (n,)
        Samples whose weights are free.
    A : array (n, n)
        Scratch memory for the kernel matrix of the free samples, overwritten.
    vectors : array (6, m)
        Scratch memory, overwritten.
    members : int64 array (m,)
        Scratch memory, overwritten.

    Returns
    -------
    rounds : int
        Number of directions: one for each weight that ended at a bound, and the last one.
    """
    before, ones, slope, direction = vectors[0], vectors[1], vectors[2], vectors[3]
    product, partial = vectors[4], vectors[5]
    for a in range(free.size):
        source, target, ridge = K[free[a]], A[a], inverse_C[free[a]]
        for b in range(a, free.size):
            target[b] = source[free[b]] + shift
        target[a] += ridge
    n = factorise(A, max(MIN_PIVOT, NOISE_ROUNDINGS * np.finfo(K.dtype).eps), ones, members)
    for k in range(n):
        members[k] = free[members[k]]
        ones[k], slope[k] = 1.0, -F[members[k]]
    gather_values(beta, free, before)
    solve_transposed(A, n, ones)
    solve_transposed(A, n, slope)
    rounds = 0
    while n > 1 and rounds < max_rounds:
        rounds += 1
        level = np.dot(ones[:n], slope[:n]) / np.dot(ones[:n], ones[:n])
        for k in range(n):
            direction[k] = slope[k] - level * ones[k]
        solve_upper(A, n, direction)
        total = 0.0
        for k in range(n):
            total += direction[k]
        for k in range(n):
            direction[k] -= total / n  # the sum differs from 0 by rounding
        step, blocker = longest_step(beta, low, high, members, n, direction)
        for k in range(n):
            t = members[k]
            beta[t] = min(max(beta[t] + step * direction[k], low[t]), high[t])  # against rounding
            slope[k] -= step * (slope[k] - level * ones[k])  # F moves by -step (F + level)
        if blocker < 0:
            break
        t = members[blocker]
        beta[t] = high[t] if direction[blocker] > 0.0 else low[t]
        leave_out(A, n, blocker, ones, slope)
        n -= 1
        for k in range(blocker, n):
            members[k] = members[k + 1]
    change = before
    for k in range(free.size):
        change[k] = beta[free[k]] - before[k]
    sum_of_rows(K, free, change, product, partial)
    for t in range(F.size):
        F[t] += product[t]
    for k in range(free.size):
        F[free[k]] += inverse_C[free[k]] * change[k]
    return rounds
