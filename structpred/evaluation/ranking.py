"""How well scores put positive samples before negative ones."""

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats
from structpred.errors import DataError


def roc_area(positive: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """The area under the ROC curve: how often a positive sample has a larger score than a negative one, ties counting half.

    Parameters
    ----------
    positive : array of bool, (n,)
        Which samples are positive: at least one, and not all.
    scores : array of float, (n,)
        Finite.

    Raises
    ------
    DataError
        For lengths that do not match, one class only, scores that are not finite.

    Examples
    --------
    >>> roc_area([True, True, False, False], [0.9, 0.3, 0.3, 0.1])
    0.875
    """
    truth, values = _checked(positive, scores)
    _, place, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(sizes) - (sizes - 1) / 2.0)[place]
    n = int(truth.sum())
    return float((ranks[truth].sum() - n * (n + 1) / 2.0) / (n * (len(truth) - n)))


def break_even_point(positive: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """The precision-recall break-even point: the precision, which then is the recall, of as many samples as are positive.

    These are the samples with the largest scores; of tied ones at the border each counts by its chance to be among them
    (Joachims 2005, section 4.2).

    Parameters, errors: as `roc_area`.

    Examples
    --------
    >>> break_even_point([True, True, False, False], [0.9, 0.3, 0.5, 0.1])
    0.5
    """
    truth, values = _checked(positive, scores)
    n = int(truth.sum())
    border = np.partition(values, len(values) - n)[len(values) - n]
    above, tied = values > border, values == border
    chance = (n - above.sum()) / tied.sum()
    return float((truth[above].sum() + chance * truth[tied].sum()) / n)


def average_precision(positive: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """The area under the precision-recall curve, as in scikit-learn: the sum over scores of precision times gain in recall.

    Of the entries of all labels at once it is AU(PRC) (Vens et al. 2008); Clus interpolates besides. Errors: as `roc_area`.

    >>> average_precision([True, False, True, False], [0.9, 0.5, 0.5, 0.1])
    0.8333333333333333
    """
    truth, values = _checked(positive, scores)
    order = np.argsort(-values)
    last = np.flatnonzero(np.append(np.diff(values[order]) != 0, True))  # of each group of tied scores
    right = np.cumsum(truth[order])[last]
    return float((np.diff(right, prepend=0) * (right / (last + 1.0))).sum() / right[-1])


def _checked(positive: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Flags and scores of one length, both classes among them."""
    truth, values = np.asarray(positive), np.asarray(scores, dtype=np.float64)
    if truth.dtype != bool or truth.ndim != 1 or truth.shape != values.shape:
        raise DataError(
            f"expected a flag, True or False, and a score for each sample, got {truth.dtype} of shape {truth.shape} and "
            f"scores of shape {values.shape}"
        )
    if truth.all() or not truth.any():
        raise DataError(f"expected positive and negative samples, got {int(truth.sum())} positive ones of {len(truth)}")
    if (wrong := np.flatnonzero(~np.isfinite(values))).size:
        raise DataError(f"scores: sample {wrong[0]} has {values[wrong[0]]}, expected finite numbers")
    return truth, values
