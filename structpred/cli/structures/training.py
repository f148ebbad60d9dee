"""What `structpred train structure` does with an oracle and a reader of the user's own."""

from typing import Any

from structpred.cli.kinds.structures import Options
from structpred.cli.own_code import made
from structpred.cli.structures.data import read
from structpred.cli.training import Training
from structpred.core.oracle import Oracle
from structpred.models import StructuredPredictor


class Run(Training[Options]):
    """Train a StructuredPredictor."""

    shardable = True

    def read(self) -> dict[str, int]:
        """The instances, and the held-out ones, by the user's reader."""
        options = self.options
        self.oracle = made(options.oracle, Oracle, "my_module:Matching")
        self.reader = {"oracle": options.oracle, "reader": options.reader}  # for people, to name what to give again
        self.dev = None if options.dev is None else read(options.reader, options.dev)
        if options.shards is not None:
            from structpred.cli.structures.shards import shards_of

            return self.cut(shards_of(options.data, options.shards, options.reader, labelled=True))
        self.train = read(options.reader, options.data)
        return {"instances": len(self.train[0])}

    def estimator(self, common: dict[str, Any]) -> StructuredPredictor:
        """The estimator."""
        return StructuredPredictor(self.oracle, scoring=self.options.scoring, **common)

    def shape(self, model: StructuredPredictor) -> str:
        """How many features there are."""
        return f"{model.n_features_in_} features"
