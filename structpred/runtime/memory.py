"""Refuse what cannot fit before it is allocated, with the size it would need."""

import os

from structpred.errors import DataError

#: what is below this always fits
SMALL = 64 << 20


def available_bytes() -> int | None:
    """The memory that the system could give now, or None where it does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def check_fits(n_bytes: int, what: str) -> None:
    """Raise DataError if `n_bytes` is more than the memory that is available; `what` says what they are for.

    >>> check_fits(1000, "a small table")
    """
    if n_bytes < SMALL:  # asking the system takes longer than decoding a sentence
        return
    free = available_bytes()
    if free is not None and n_bytes > free:
        raise DataError(
            f"{what} would need {n_bytes / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are available; "
            "split the input (at sentence ends, say) or use a machine with more memory"
        )
