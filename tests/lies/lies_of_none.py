"""Honest components of a user's own, which no guard may name: controls."""

from typing import Any

import numpy as np
from lies_of_decisions import decisions, workers
from lies_of_others import Honest, callbacks, classes, scalar
from lies_of_parts import Changed
from lies_of_trainers import ColdSparseMAP, OwnBCFW, Scored, surrogate, trainer
from lies_runs import plant
from lies_world import AtMostTwo, Bounded, ByLoss, FastRows, LastItemForbidden, OwnRows, Rich, World

from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.l1 import L1
from structpred.objectives.regularisers.l2 import L2
from structpred.objectives.scalar.errors import Squared
from structpred.objectives.scalar.margins import Logistic

MARGIN = ("bcfw", "corrective", "n_slack", "one_slack", "bmrm", "ls_bmrm", "sgd", "proximal", "mira")
SLACK, LOG, L1_WORLD = World("slack"), World("log"), World("margin", "l1")
FAMILY = "honest"


def honest(setting: str, *trainers: str, **others: Any) -> Any:
    """As for a lie."""
    return plant(FAMILY, setting, *trainers, **others)


for _rows in (OwnRows, FastRows):
    for _oracle in (AtMostTwo, Rich, Bounded, ByLoss) if _rows is OwnRows else (Rich,):

        class _Map(_rows):  # type: ignore[misc, valid-type]
            """A right feature map with a right oracle."""

        _Map.__name__ = f"{_rows.__name__} and {_oracle.__name__}"
        honest("features", *MARGIN, oracle=_oracle)(_Map)
        honest("features", "bcfw", "n_slack", "one_slack", "sgd", world=SLACK, oracle=_oracle)(_Map)
    _Map.__name__ = _rows.__name__
    honest("features", "oeg", "lbfgs", "bmrm", "ls_bmrm", "sgd", world=LOG, oracle=Rich)(_Map)
    honest("features", "lbfgs", world=World("sparsemap"))(_Map)
    honest("features", "lbfgs", "bmrm", world=World("perturbed"))(_Map)
    honest("features", "lbfgs", world=World("soft_margin"), oracle=Rich)(_Map)
    honest("features", "pragam", "projected_ascent", oracle=Rich)(_Map)


@honest("features", *MARGIN)
@honest("features", "lbfgs", "oeg", "bmrm", world=LOG, oracle=Rich)
class RightInSinglePrecision(OwnRows):
    """Weights and scores are float32, as from a network."""

    def __init__(self, rows: Any) -> None:
        super().__init__(rows.astype(np.float32))
        self.dtype = np.dtype(np.float32)

    def scores(self, w: Any, i: int) -> Any:
        return (self.rows[i] @ w.astype(np.float32)).astype(np.float64)


@honest("features", *MARGIN, world=LastItemForbidden())
class RightWithConstraints(OwnRows):
    """The last item of the first instance is forbidden."""

    def fixed_scores(self, i: int) -> Any:
        return np.where(np.arange(5) == 4, -1e30, 0.0) if i == 0 else None


@honest("oracle", *MARGIN)
class RightAndSlow(AtMostTwo):
    """All outputs are tried; of equal ones the last is taken."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return max(reversed(list(self.enumerate(shape))), key=lambda y: scores[y].sum())


@honest("loss", *MARGIN)
class RightLoss(Changed):
    """The costs are those of the parent."""


@honest("regulariser", "bcfw", "one_slack", "sgd", "proximal")
class RightSquares(L2):
    """Half the squared norm."""


@honest("regulariser", "bcfw", "ls_bmrm", "proximal", world=L1_WORLD)
class RightL1(L1):
    """With the l1 norm."""

    def __init__(self) -> None:
        super().__init__(0.5)


trainer("bcfw")(type("RightBCFW", (OwnBCFW,), {"__doc__": "Bounds are those of the parent."}))


@surrogate("bcfw", "n_slack", "one_slack", "sgd", "bmrm", "proximal")
class RightHinge(MarginRescaling):
    """Values are those of the parent."""

    def values(self, task: Any, w: Any) -> Any:
        return super().values(task, w)


@Scored("sparsemap")
class RightSparseMAP(ColdSparseMAP):
    """Terms are those of the parent."""


@scalar("sdca", "pegasos", "lbfgs")
class RightSquare(Squared):
    """Value and derivative are written out."""

    def value(self, z: Any, y: Any) -> Any:
        return 0.5 * np.square(z - y)

    def derivative(self, z: Any, y: Any) -> Any:
        return z - y


@classes("sdca", "bmrm", "ls_bmrm", "sgd", "lbfgs")
class RightLogistic(Logistic):
    """Value and derivative are those of the parent."""

    def value(self, z: Any, y: Any) -> Any:
        return super().value(z, y)


@callbacks("bcfw", "corrective", "bmrm", "one_slack", "n_slack")
class RightCallbacks(Honest):
    """Three right functions."""


@workers("log", "lbfgs")
@workers("margin", "bcfw", "n_slack")
@decisions("bcfw", "one_slack", "corrective", "n_slack")
class RightDecisions(Rich):
    """A right oracle, in decisions and on workers."""
