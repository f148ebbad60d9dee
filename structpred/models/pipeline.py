"""From words to trees: a sequence labeller tags the words, and a parser that has learnt from such tags finds the trees."""

import itertools
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from structpred.errors import DataError, ParameterError
from structpred.io.treebanks.treebank import Treebank
from structpred.models.bundles import to_bundle
from structpred.models.chain.labeler import ChainLabeler
from structpred.models.parser.parser import DependencyParser
from structpred.models.parser.sentences import as_treebank, training_trees
from structpred.models.partial import for_task
from structpred.models.settings import resolve_regulariser
from structpred.models.stages import forget_stages, stage_of
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Field, Record, Whole, maybe
from structpred.trainers.names import require
from structpred.trainers.problem import Problem


@dataclass(eq=False, repr=False)
class ParsingPipeline(DependencyParser):
    """Tags and trees of bare words: a ChainLabeler gives the tags (UPOS), and a parser that looks at forms and tags the trees.

    The parser learns from predicted tags, with errors such as it will meet: those of every k-th sentence are given by a tagger
    that was trained on the other sentences. Prediction puts the tagger's tags in place of any that X has.
    X and y are those of a DependencyParser; in training words have tags. The words of running text are found by
    `structpred.bridges.spacy.tokenized`, and by `structpred predict --text`.

    Parameters
    ----------
    trainer, C, max_iter, tol, projective, single_root, templates, max_bits, prune, labelled, label_C, ...
        Those of the parser, as for a `DependencyParser`. Callbacks get the rows of the tagger, too, with "stage": 3, and those of
        the taggers of parts with "stage": 4. Taggers have checkpoints of their own, next to that of the parser.
    attributes : list of str
        What the parser may look at: form and upos unless given.
    tagger : ChainLabeler, optional
        The settings of the tagger: its templates read forms, as column 0. None: ``ChainLabeler("sgd", template="pos")``.
    jackknife : int, optional
        The number of parts. None: the parser learns from the tags of the training data.

    Attributes
    ----------
    tagger_ : ChainLabeler
        The fitted tagger, of all training data.
    coef_, relations_, ... : as of a DependencyParser.

    Examples
    --------
    >>> X = [[{"form": "cats", "upos": "NOUN"}, {"form": "sleep", "upos": "VERB"}]] * 4
    >>> model = ParsingPipeline(jackknife=2).fit(X, [[(2, "nsubj"), (0, "root")]] * 4)
    >>> model.tag([["cats", "sleep"]]).upos, model.predict([["cats", "sleep"]])[0].heads.tolist()
    (['NOUN', 'VERB'], [2, 0])
    """

    _: KW_ONLY
    attributes: Sequence[str] | None = ("form", "upos")
    tagger: ChainLabeler | None = None
    jackknife: int | None = 10

    tagger_: ChainLabeler = field(init=False)
    _new_tagger: ChainLabeler = field(init=False)

    _HEADER = Record({
        **DependencyParser._HEADER.fields,
        "tagger": Field(ChainLabeler._HEADER), "jackknife": Field(maybe(Whole(2)), "jackknife"),
    })  # fmt: skip
    _sharding = None  # type: ignore[assignment]  # taggers of parts know all sentences
    _brings = ("upos",)
    _comes_last = True

    def _contents(self) -> Bundle:
        found, part = super()._contents(), to_bundle(self.tagger_)
        found.header["tagger"] = part.header
        found.add("tagger", part)
        return found

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Any) -> Self:
        model = super()._from_bundle(head, bundle, oracle)
        model.jackknife = head["jackknife"]
        model.tagger = model.tagger_ = ChainLabeler._from_bundle(head["tagger"], bundle.part("tagger", head["tagger"]), None)
        return model

    def fit(
        self, X: Any, y: Any = None, *, sample_weight: npt.ArrayLike | None = None, dev: Treebank | tuple[Any, Any] | None = None
    ) -> Self:
        """Train tagger and parser. sample_weight: one number per sentence, for the parser. dev: as for a DependencyParser.

        Raises DataError, also where no word has a tag. When interrupted while it tags it keeps checkpoints alone, later as a
        parser does.
        """
        held_out, treebank = self._checked(dev), training_trees(X, y, self.single_root)
        if set(treebank.upos) <= {"_"}:
            raise DataError(f"{treebank.where(0)}: expected a tag (UPOS): a pipeline learns them; got none in the whole treebank")
        parts, n = self.jackknife, len(treebank)
        if parts is not None and (isinstance(parts, bool) or not isinstance(parts, int | np.integer) or not 2 <= parts <= n):
            raise ParameterError(f"jackknife: expected None, or from 2 parts to as many as sentences, {n}, got {parts!r}")
        self._refuse_early()
        forget_stages(self, "tagger", parts or 0)
        tagger, tags = self._trained(treebank), np.array(treebank.upos, dtype=object)
        part_of = np.arange(n) % (parts or 1)
        for k in range(parts or 0):
            others = self._trained(treebank.take(part_of != k), k + 1)
            tags[np.repeat(part_of == k, treebank.lengths)] = _tags(others, treebank.take(part_of == k))
        self._new_tagger = tagger
        held_out = None if held_out is None else held_out.with_tags(_tags(tagger, held_out))
        super().fit(treebank.with_tags(tags.tolist()), sample_weight=sample_weight, dev=held_out)
        return self

    def _refuse_early(self) -> None:
        """Raise what trainer, surrogate or regulariser refuse of parsers, found on a word, before taggers are trained."""
        same = {
            name: getattr(self, name) for name in ("trainer", "loss", "surrogate", "regulariser", "projective", "single_root")
        }
        how, parser, word = DependencyParser._sharding, DependencyParser(**same), [[{"form": "a"}]]
        data = how.read(parser, training_trees(word, [[(0, "root")]], self.single_root), None, whole=True)
        task = how.built(parser, how.plan(parser, [how.scanned(parser, data)], None), data)
        parser._default = parser._default_for(task)
        trainer, surrogate = for_task(task, *parser._trainer_and_surrogate())
        require(trainer, Problem(task, surrogate, 1.0, regulariser=resolve_regulariser(self.regulariser, trainer)))

    def _trained(self, treebank: Treebank, part: int = 0) -> ChainLabeler:
        """A tagger, fitted to a treebank. part: 0, of all."""
        tagger = ChainLabeler("sgd", template="pos", random_state=self.random_state) if self.tagger is None else self.tagger
        tagger = replace(tagger, missing="_", n_jobs=self.n_jobs, verbose=self.verbose)
        with stage_of(self, tagger, "tagger", 3 + (part > 0), part, self.jackknife or 0, first=not part):
            tagger.fit(_rows(treebank), [sentence.upos for sentence in treebank.sentences()])
        return tagger

    def _keep_stages(self, *stages: Any) -> None:
        self.tagger_ = self.__dict__.pop("_new_tagger")
        super()._keep_stages(*stages)

    def tag(self, X: Any) -> Treebank:
        """The sentences of X with the tags that the tagger gives their words."""
        self._check_fitted()
        treebank = as_treebank(X)
        return treebank.with_tags(_tags(self.tagger_, treebank))

    _words = tag


def _rows(treebank: Treebank) -> list[list[tuple[str]]]:
    """The sentences as a template of words reads them."""
    return [[(form,) for form in treebank.forms[a:b]] for a, b in itertools.pairwise(treebank.offsets.tolist())]


def _tags(tagger: ChainLabeler, treebank: Treebank) -> list[str]:
    """The tags of the words, flat."""
    return [str(tag) for tags in tagger.predict(_rows(treebank)) for tag in tags.tolist()]
