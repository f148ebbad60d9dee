# mypy: ignore-errors
"""Compiled lists of what each word may have as modifiers and as heads."""

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def list_heads(allowed, sizes, words, ends):
    """Fill the lists of `HeadLists` for a table of candidates, (n, n + 1), whose diagonal of the words themselves is zero."""
    n = allowed.shape[0]
    k = 0
    for h in range(n + 1):
        begin = k
        for m in range(h - 1, 0, -1):
            if allowed[m - 1, h]:
                words[k] = m
                k += 1
        sizes[h, 1] = k - begin
        for m in range(h + 1, n + 1):
            if allowed[m - 1, h]:
                words[k] = m
                k += 1
        sizes[h, 2] = k - begin - sizes[h, 1]
        begin = k
        for g in range(n + 1 if h else 0):
            if allowed[h - 1, g]:
                words[k] = g
                k += 1
        sizes[h, 0] = k - begin
        ends[h + 1] = k
