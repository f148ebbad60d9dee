"""Working memory of chain decoding and of forward-backward."""

import threading

import numpy as np

from structpred.core.types import Floats
from structpred.core.weights import padded
from structpred.runtime.memory import check_fits

#: positions of a block, whose scores are kept
BLOCK = 1024


def best_scratch(n_labels: int, longest: int) -> tuple[Floats, ...]:
    """The working memory of one decoder, as its kernels take it: O(L^2), and 8 bytes a label for every 1,024 positions."""
    width, rows = padded(n_labels), max(min(longest, BLOCK), 1)
    blocks = -(-max(longest, 1) // rows)
    check_fits(8 * width * (n_labels + 2 * rows + blocks), f"decoding {longest:,} positions with {n_labels} labels")
    return np.zeros((n_labels, width)), np.zeros((rows, width)), np.zeros((rows, width)), np.zeros((blocks, width))


class SumScratch:
    """The working memory of one forward-backward pass: four arrays of (longest, width) float64."""

    def __init__(self, n_labels: int, longest: int) -> None:
        width = padded(n_labels)
        check_fits(4 * 8 * longest * width, f"marginals of {longest:,} positions with {n_labels} labels")
        self.trans, self.exp_trans, self.counts = np.zeros((3, n_labels, width))
        self.emissions, self.alpha, self.local, self.marg = np.zeros((4, longest, width))
        self.norm = np.zeros(longest)
        self.work = np.zeros((3, width))
        passes = self.trans, self.exp_trans, self.emissions, self.alpha, self.local, self.norm
        self.rows = (*passes, self.marg, self.counts, self.work)  # as the kernels of flat scores take it


_kept = threading.local()


def sum_scratch(n_labels: int, longest: int) -> SumScratch:
    """Working memory for a chain of `longest` positions: this thread's own, kept from call to call while it is small."""
    kept: SumScratch | None = getattr(_kept, "scratch", None)
    if kept is not None and kept.counts.shape[0] == n_labels and len(kept.norm) >= longest:
        return kept
    scratch = SumScratch(n_labels, longest)
    if scratch.alpha.nbytes < 1 << 20:
        _kept.scratch = scratch
    return scratch
