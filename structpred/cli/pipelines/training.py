"""What `structpred train pipeline` does: the taggers first, then what `train parser` does."""

from typing import Any

from structpred.cli.dependencies import training as parsers
from structpred.models.pipeline import ParsingPipeline


class Run(parsers.Run):
    """Train a ParsingPipeline on a treebank."""

    shardable = False
    stages = (*parsers.Run.stages, "tagger", "tagger of a part")
    made = ParsingPipeline
    alike = (*parsers.Run.alike, "jackknife")

    def trained(self, model: Any) -> dict[str, Any]:
        """The tagger, and the stages of the parser."""
        return {"tagger": model.tagger_, **super().trained(model)}
