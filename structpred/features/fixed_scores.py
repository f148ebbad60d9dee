"""Scores added to what the weights of a label sequence give: hard constraints (-1e30 forbids) and priors."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class FixedScores:
    """Scores added to the parts of sequences with n_labels labels.

    rows: (M, n_labels) float64, a few distinct rows. row_of: int32, one row number per token. edges: (n_labels, n_labels),
    label before, label after.
    """

    rows: npt.NDArray[np.float64]
    row_of: npt.NDArray[np.int32]
    edges: npt.NDArray[np.float64]

    @staticmethod
    def none(n_tokens: int, n_labels: int) -> "FixedScores":
        """Nothing added: one row of zeros for all."""
        return FixedScores(np.zeros((1, n_labels)), np.zeros(n_tokens, np.int32), np.zeros((n_labels, n_labels)))
