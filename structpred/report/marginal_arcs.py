"""Marginals of dependency trees as a picture: every possible arc over the words, with its weight as number, width and opacity."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats
from structpred.errors import DataError
from structpred.report.arc_layout import Arc, Side
from structpred.report.arcs import arc_in_words, picture, shown_words
from structpred.text.markup import Html, join, tag

_NEAR = 1e-3  # how far from 1 the weights of a word's heads may sum: they may have been through float32


def draw_marginals(
    forms: Sequence[str], marginals: npt.ArrayLike, *, tags: Sequence[str] | None = None, least: float = 0.005
) -> Html:
    """Draw how much each arc of a sentence counts: marginals over trees, as one SVG element that needs nothing from outside.

    A layer over trees returns such weights: `SparseMAP` gives most arcs none at all, so that only the readings in doubt are seen;
    `SoftLayer` gives each arc a probability. Arcs go from heads to words, those of a root from above. An arc's number is its
    weight; heavier arcs are wider and darker.

    Parameters
    ----------
    forms : the words, n of them.
    marginals : (n, n + 1) or flat; row i, column h is the weight of the arc from head h to word i + 1; column 0 is the root.
        These are the parts of `ArborescenceOracle` and `ProjectiveTreeOracle`.
    tags : a string per word, shown below it.
    least : arcs with a smaller weight are left out; the title says how many.

    Raises
    ------
    DataError
        For lengths that differ, weights that are no numbers from 0 to 1, and a word whose heads do not sum to 1.

    Examples
    --------
    >>> picture = draw_marginals(["Cats", "sleep"], [[0.25, 0.0, 0.75], [0.75, 0.25, 0.0]])
    >>> picture[:4], picture.count("0.75</text>")
    ('<svg', 2)
    """
    words, names = shown_words(forms, tags)
    weights = _checked(marginals, words)
    shown = weights >= max(least, np.finfo(float).tiny)
    arcs = [Arc.of(k, head, f"{(x := weights[k, head]):.2f}", x) for k, head in np.argwhere(shown).tolist()]
    hidden = int(((weights > 0) & ~shown).sum())
    rest = f"; {hidden} arcs below {least:g} are left out" if hidden else ""
    title = tag("title", f"Weights of the arcs of: {' '.join(words)}{rest}")
    description = tag("desc", "; ".join(arc_in_words(words, arc) for arc in arcs))
    return picture(words, names, (Side(arcs, len(words)), Side([], len(words))), join(title, description), compared=False)


def _checked(marginals: npt.ArrayLike, words: Sequence[str]) -> Floats:
    """The weights, (n, n + 1), rounding errors outside of [0, 1] removed."""
    n, found = len(words), np.asarray(marginals, dtype=np.float64)
    if found.shape not in ((n, n + 1), (n * (n + 1),)):
        raise DataError(
            f"expected the weights of {n} words as ({n}, {n + 1}), a row a word and a column a head, the root first, or flat; "
            f"got shape {found.shape}"
        )
    found = found.reshape(n, n + 1)
    for k, row in enumerate(found):
        if not ((row >= -_NEAR) & (row <= 1 + _NEAR)).all() or abs(row.sum() - 1) > _NEAR or row[k + 1] > _NEAR:
            raise DataError(
                f"word {k + 1} ({words[k]!r}): expected weights of its heads from 0 to 1 that sum to 1, none on itself; got "
                f"{row.round(3).tolist()}"
            )
    weights: Floats = np.clip(found, 0.0, 1.0)
    weights[np.arange(n), np.arange(1, n + 1)] = 0.0
    return weights
