"""What the commands do with a pipeline: what they do with a parser, and the tags."""

import numpy as np

from structpred.cli.dependencies import results as parsers
from structpred.cli.dependencies.results import explain, facts, judged_files, learnt, page, predict, shards, words_as_data
from structpred.cli.kinds.kind import Asked, Scored
from structpred.models.pipeline import ParsingPipeline

__all__ = ["explain", "facts", "judged", "judged_files", "learnt", "page", "predict", "shards", "words_as_data"]


def judged(pipeline: ParsingPipeline, asked: Asked) -> Scored:
    """The share of right tags, and the scores of a parser, all from the words of the data alone."""
    gold = parsers.read_gold(asked.data, asked.reading)
    found, true = parsers.judged(pipeline, asked, gold), np.array(gold.upos)
    if not (known := true != "_").any():
        return found
    share = float((np.array(pipeline.tag(gold).upos) == true)[known].mean())
    text = f"tags {100 * share:.2f} % right of {known.sum()}; the trees are those of the predicted tags\n\n{found.text}"
    return Scored({"tag_accuracy": share, **found.figures}, text)
