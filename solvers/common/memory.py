"""How much memory a process may still take: what does not fit is refused before any work is done."""

from pathlib import Path

import psutil

SMALL = 1 << 28  # bytes that are taken without asking
CGROUP = Path("/sys/fs/cgroup")


def require_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Refuse what would not fit into memory.

    Parameters
    ----------
    n_bytes : float
    what : str
        Subject of the sentence: what takes these bytes.
    remedy : str
        What to do instead.

    Raises
    ------
    MemoryError
    """
    if n_bytes <= SMALL:
        return
    available = available_bytes()
    if n_bytes > available:
        raise MemoryError(
            f"{what} takes {n_bytes / 1e9:.1f} GB, and {max(0.0, available) / 1e9:.1f} GB are free: {remedy}"
        )


def available_bytes() -> float:
    """Return the bytes that this process can take: of the host, of its control group, of its limit."""
    return min(float(psutil.virtual_memory().available), _left_by_control_group(), _left_by_own_limit())


def _left_by_control_group() -> float:
    """Return the same of a container (cgroup v2); pages of files that can be dropped count as free."""
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        if limit == "max":
            return float("inf")
        used = int((CGROUP / "memory.current").read_text())
        statistics = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        return float(int(limit) - used + int(statistics.get("inactive_file", 0)))
    except (OSError, ValueError):
        return float("inf")


def _left_by_own_limit() -> float:
    """Return what is left of this process's address space (ulimit -v)."""
    process = psutil.Process()
    if not hasattr(process, "rlimit"):  # Linux only
        return float("inf")
    limit, _ = process.rlimit(psutil.RLIMIT_AS)
    return float("inf") if limit == psutil.RLIM_INFINITY else float(limit - process.memory_info().vms)
