"""What `structpred train parser` does with treebanks: heads first, then relations."""

import logging
import math
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from structpred.cli.dependencies.results import read, shards_of
from structpred.cli.kinds.dependencies import Options
from structpred.cli.options import Reading
from structpred.cli.training import Training, stage_facts, tell_read, tell_stage
from structpred.errors import DataError
from structpred.evaluation import CONLL07, UD, ParsingScores, evaluate_treebanks
from structpred.io.templates.arc_template_sets import conjunction_family, read_arc_templates
from structpred.io.text import source_name
from structpred.io.treebanks.formats import CONLL_U
from structpred.io.treebanks.treebank import Treebank
from structpred.models.parser.parser import DependencyParser
from structpred.models.parser.sentences import check_columns
from structpred.models.stages import stage_checkpoint

log = logging.getLogger("structpred.cli")


class Run(Training[Options]):
    """Train a DependencyParser on a treebank."""

    shardable = foldable = True
    stages: tuple[str, ...] = ("arcs", "relations")
    score = "UAS"
    #: what is trained, and the settings that options have under the same names
    made: ClassVar[type[DependencyParser]] = DependencyParser
    alike: ClassVar[tuple[str, ...]] = ("projective", "order", "max_bits", "prune", "label_C", "n_jobs")

    @property
    def attributes(self) -> tuple[str, ...] | None:
        """What templates may look at."""
        return None if self.options.attributes is None else tuple(map(str.strip, self.options.attributes.split(",")))

    def conflicts(self) -> dict[str, bool]:
        """For options that do not go together the message, and whether they were given."""
        options = self.options
        check_columns(self.attributes)
        both = options.templates is not None and options.conjunctions
        return {
            "--templates cannot be combined with --conjunctions, which brings its own templates": both,
            "--templates must be a file, not -": options.templates == "-",
            "--label-C must be a finite number": not math.isfinite(options.label_C),
        }

    def inputs(self) -> list[str]:
        """The file of templates."""
        return [] if self.options.templates is None else [self.options.templates]

    def read(self) -> dict[str, int]:
        """Templates, the treebank, and the held-out treebank."""
        options = self.options
        self.templates = conjunction_family() if options.conjunctions else None
        if options.templates is not None:
            self.templates = read_arc_templates(options.templates)
        if options.shards is None:
            data = _read(options.data, options)
            self.train, format, sizes = (data,), data.format.name, {"sentences": len(data), "words": data.n_words}
        else:
            shards, format = shards_of(options.data, options.shards, _reading(options))
            sizes = self.cut(shards)
        self.reader = {"format": format, "template": "conjunctions" if options.conjunctions else options.templates}
        self.dev = None if options.dev is None else _read(options.dev, options)
        if self.dev is not None and not self.dev.has_trees:
            where = self.dev.where(int(np.argmax(self.dev.heads < 0)))
            raise DataError(f"{where}: expected a head: held-out trees are compared with whole ones; got none")
        return sizes

    def estimator(self, common: dict[str, Any]) -> DependencyParser:
        """The parser."""
        options = self.options
        alike = {name: getattr(options, name) for name in self.alike}
        return self.made(
            single_root=not options.multi_root, templates=self.templates, attributes=self.attributes,
            labelled=not options.unlabelled, **alike, **common,
        )  # fmt: skip

    def trained(self, model: Any) -> dict[str, Any]:
        """What was trained in each stage, None where one was left out."""
        return {"arcs": model, "relations": model.relations_}

    def checkpoints(self) -> list[Path]:
        """The files of both stages."""
        path = self.options.checkpoint_path
        return [path, stage_checkpoint(path)]

    def end(self, model: DependencyParser) -> dict[str, Any]:
        """The event of the end, with both stages."""
        self.scores: ParsingScores | None = None
        if self.dev is not None:  # by UD's rules where they apply, else over every word
            rules = UD if self.dev.format == CONLL_U and model.single_root else CONLL07
            self.scores = evaluate_treebanks(self.dev, model.predict(self.dev), rules)
        scores = self.scores
        return {
            **{name: None if stage is None else stage_facts(stage) for name, stage in self.trained(model).items()},
            "projective": model.projective_, "left_out": model.left_out_, "kept": model.kept_,
            "dev": None if scores is None else {"rules": scores.rules, "uas": scores.uas, "las": scores.las},
            "templates": len(model.templates_), "n_weights": len(model.coef_),
            "labels": [] if model.relations_ is None else model.relations_.classes_.tolist(),
        }  # fmt: skip

    def tell(self, model: DependencyParser) -> None:
        """A line for each stage, the kind of trees, what pruning kept, and the scores on held-out data."""
        options, scores = self.options, self.scores
        for name, stage in self.trained(model).items():
            if stage is not None:
                tell_stage(stage, f"{name}: ")
        kind = "projective trees" if model.projective_ else "all trees, crossing arcs included"
        all_of = f" of {len(self.train[0])}" if options.shards is None else ""
        left = f"; {model.left_out_}{all_of} sentences cross and were left out of training" if model.left_out_ else ""
        log.info("trees: %s, %s%s", kind, "one root" if model.single_root else "any number of roots", left)
        if model.kept_ is not None:
            log.info("pruning: %s heads per word hold %.2f %% of the true arcs", model._n_candidates, 100 * model.kept_)
        if unused := len(model.templates or ()) - len(model.templates_) if model.templates is not None else 0:
            name, present = source_name(options.data), ", ".join(model.featurizer_.present)
            log.warning("%d of the templates were left out: the words of %s have only %s", unused, name, present)
        if scores is not None:
            las = "" if scores.las is None else f", LAS {100 * scores.las:.2f} %"
            log.info("%s: UAS %.2f %%%s (rules of %s)", options.dev, 100 * scores.uas, las, scores.rules)

    def shape(self, model: DependencyParser) -> str:
        """Templates, weights and relations."""
        weights = f"{len(model.coef_)} weights ({np.count_nonzero(model.coef_)} not zero)"
        n_relations = 0 if model.relations_ is None else len(model.relations_.classes_)
        return f"{len(model.templates_)} templates, {weights}, {n_relations} relations"


def _reading(options: Options) -> Reading:
    return Reading(options.format, options.encoding, options.on_error)


def _read(path: str, options: Options) -> Treebank:
    """A treebank with a head for every word, or for some of them."""
    start = time.perf_counter()
    treebank = read(path, _reading(options), missing_heads=True)
    if (treebank.heads < 0).all():
        raise DataError(f"{treebank.where(0)}: expected a head: a parser learns from trees; got none in the whole file")
    sizes = f"{len(treebank)} sentences, {treebank.n_words} words, {len(set(treebank.labels) - {'_'})} relations"
    tell_read(treebank.path, f"{sizes}, format {treebank.format.name}", start)
    return treebank
