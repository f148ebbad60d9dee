"""What `structpred train pipeline` does: the taggers first, then what `train parser` does."""

from pathlib import Path
from typing import Any

from structpred.cli.dependencies import training as parsers
from structpred.models.pipeline import ParsingPipeline
from structpred.models.stages import stage_checkpoint


class Run(parsers.Run):
    """Train a ParsingPipeline on a treebank."""

    shardable = False
    stages = (*parsers.Run.stages, "tagger", "tagger of a part")
    made = ParsingPipeline
    alike = (*parsers.Run.alike, "jackknife")

    def checkpoints(self) -> list[Path]:
        """Those of the taggers, too."""
        path, parts = self.options.checkpoint_path, range(self.options.jackknife + 1)  # type: ignore[attr-defined]
        return [*super().checkpoints(), *(stage_checkpoint(path, "tagger", k) for k in parts)]

    def trained(self, model: Any) -> dict[str, Any]:
        """The tagger, and the stages of the parser."""
        return {"tagger": model.tagger_, **super().trained(model)}
