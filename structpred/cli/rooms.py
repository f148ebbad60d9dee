"""The kinds of models of this package: a file each in cli/kinds, and a folder of the same name with what commands do for it.

The file has what is needed before a command runs: Options, a child of TrainingOptions. Of the folder only what the command
needs is loaded:

training : Run, a child of Training.
results : predict, shards, words_as_data and explain, as the methods of Kind; those of them that are not there are refused.
    judged and judged_files give the Scored of `evaluate`; facts(model, header) the pairs of `described`; learnt(model, asked)
    the Learnt of `inspect`; page(model, asked, about) the page of `report`.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from structpred.cli.kinds.kind import Asked, Explained, Kind

if TYPE_CHECKING:
    from structpred.cli.training import Training
    from structpred.distributed import Shards


class Room(Kind):
    """A kind whose work is in the folder of its name."""

    def _work(self, module: str) -> Any:
        return importlib.import_module(f"structpred.cli.{type(self).__module__.rpartition('.')[2]}.{module}")

    def _result(self, name: str) -> Callable[..., Any]:
        """The function of that name, or the method of Kind that refuses."""
        return getattr(self._work("results"), name, None) or getattr(super(), name)

    def training(self, values: Mapping[str, Any]) -> "Training[Any]":
        """One run of `structpred train NAME`."""
        file = importlib.import_module(type(self).__module__)
        run: Training[Any] = self._work("training").Run(file.Options(**values))
        run.lacks = self.lacks
        return run

    def predict(self, model: Any, asked: Asked) -> None:
        """Write what the model predicts, in the format of the data or as JSON objects."""
        self._result("predict")(model, asked)

    def shards(self, model: Any, asked: Asked, n: int) -> "Shards":
        """The data in pieces."""
        return self._result("shards")(model, asked, n)

    def words_as_data(self, model: Any, asked: Asked, sentences: Sequence[Sequence[str]]) -> str:
        """Sentences in the format of the training data."""
        return str(self._result("words_as_data")(model, asked, sentences))

    def evaluate(self, model: Any, asked: Asked) -> str:
        """The scores on labelled data."""
        return str(self._work("results").judged(model, asked).shown(asked))

    def evaluate_files(self, ctx: click.Context, model: str | None, asked: Asked) -> str:
        """The same of files with predictions."""
        return str(self._work("results").judged_files(ctx, model, asked).shown(asked))

    def explain(self, model: Any, asked: Asked) -> Explained:
        """What each feature adds to the score of an output."""
        return self._result("explain")(model, asked)

    def inspect(self, model: Any, asked: Asked) -> str:
        """Settings, certificate and what was learnt, as text or as one JSON object."""
        from structpred.cli.facts import model_facts, shown

        work, header = self._work("results"), model_facts(asked.model)
        return shown(model, asked, header, work.facts(model, header), work.learnt(model, asked))

    def page(self, model: Any, asked: Asked) -> str:
        """Facts and certificate; with data scores and errors; what was learnt."""
        from structpred.cli.facts import CERTIFICATE, model_facts
        from structpred.report.contents import About, Stage

        work, header = self._work("results"), model_facts(asked.model)
        # a page shows the certificates by themselves
        facts = [pair for pair in work.facts(model, header) if not pair[0].startswith(CERTIFICATE)]
        return str(work.page(model, asked, About(asked.title or asked.model, facts, [Stage(model.certificate_, model.history_)])))
