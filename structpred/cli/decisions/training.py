"""What `structpred train decision` does with an oracle and a reader."""

from typing import Any

from structpred.cli.kinds.decisions import Options
from structpred.cli.own_code import made
from structpred.cli.structures.data import read
from structpred.cli.training import Training
from structpred.cli.training_options import trainer_of
from structpred.core.oracle import Oracle
from structpred.models import DecisionModel


class Run(Training[Options]):
    """Train a DecisionModel."""

    def read(self) -> dict[str, int]:
        """The instances, by the reader."""
        options = self.options
        self.oracle = made(options.oracle, Oracle, "structpred.oracles.shortest_path:ShortestPathOracle")
        self.train = read(options.reader, options.data)
        return {"instances": len(self.train[0])}

    def estimator(self, common: dict[str, Any]) -> DecisionModel:
        """The estimator."""
        own = {name: common[name] for name in ("C", "max_iter", "tol", "check_every", "callbacks", "random_state")}
        return DecisionModel(
            self.oracle, loss=self.options.criterion, trainer=trainer_of(self.options.minimiser) or "adam", **own
        )

    def fit(self, model: DecisionModel) -> None:
        """Fit it; the names of oracle and reader are kept for people, to name what to give again."""
        X, numbers = self.train
        model.fit(X, **{"values" if self.options.maximise else "costs": numbers})
        model.reader_ = {"oracle": self.options.oracle, "reader": self.options.reader}

    def shape(self, model: DecisionModel) -> str:
        """How many weights there are."""
        return f"{model.n_features_in_} features" + (" a part" if model.per_part_ else f", {model.n_outputs_} outputs")
