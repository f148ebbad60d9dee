"""Tags and trees decoded together: a tagger's chain and a parser's tree agree on the tags that the parser looks at.

A pipeline gives the parser one tag a word. Here a word that the tagger is unsure of may have its second best tag, too, and arcs
from or to it have other scores then: the parser's own, for a sentence with that tag. Chain, tree and the pairs of arcs and tags
are members of one composition, whose answers are proven best, but for a few that would need more than 100 subproblems.

    STRUCTPRED_DATA=/data python examples/tags_and_trees.py
    STRUCTPRED_DATA=/data python examples/tags_and_trees.py --quick
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np

from structpred.features.arcs import ArcFeatures
from structpred.io import Treebank, read_treebank
from structpred.models import ParsingPipeline
from structpred.models.chain.decoding import chain_inference
from structpred.models.parser.arcs import tree_oracle
from structpred.oracles import ChainOracle, Composed, Logic
from structpred.oracles.composition.layout import Member
from structpred.task.inference import Inference


class TagsAndTrees(Composed):
    """shape = (number of words, number of tags, pairs ((word, tag, arc), ...)). Labels: heads, then tags.

    Parts: the arcs of the tree, labels and transitions of the chain, and for each pair "the arc is there, the word has the tag".
    """

    chain, both = ChainOracle(), Logic("and")

    def __init__(self, tree):
        super().__init__([], max_nodes=100)
        self.tree = tree

    def members(self, shape):
        """The tree, the chain, and a formula a pair."""
        n, k, pairs = shape
        arcs, rest = n * (n + 1), n * k + k * k
        found = [Member(self.tree, (n,), np.arange(arcs)), Member(self.chain, (n, k), arcs + np.arange(rest))]
        for p, (word, tag, arc) in enumerate(pairs):
            found.append(Member(self.both, (3,), np.array([arc, arcs + word * k + tag, arcs + rest + p])))
        return found

    def output_of(self, answers, shape):
        """Heads and tags."""
        return np.concatenate(answers[:2])

    def parts(self, labels, shape):
        """Arcs, labels, transitions, and pairs that are there."""
        n, k, pairs = shape
        heads, tags = labels[:n], labels[n:]
        there = [p for p, (word, tag, arc) in enumerate(pairs) if tags[word] == tag and heads[arc // (n + 1)] == arc % (n + 1)]
        rest = n * (n + 1) + self.chain.parts(tags, (n, k))
        return np.concatenate((self.tree.parts(heads, (n,)), rest, n * (n + 1) + n * k + k * k + np.array(there, dtype=np.int64)))


def arc_scores(model, sentences, tags):
    """The parser's scores of all arcs of each sentence with these tags."""
    treebank = Treebank.of([one._replace(upos=own) for one, own in zip(sentences, tags, strict=True)])
    features = ArcFeatures(model.featurizer_.transform(treebank), model.templates_, model.bits_, dtype=model.coef_.dtype)
    shapes = [(n,) for n in treebank.lengths.tolist()]
    return list(Inference(features, tree_oracle(model.projective_, model.single_root), shapes).part_scores(model.coef_))


def problem(model, sentence, tagger_scores, unsure, weight):
    """(scores, shape) of one sentence: words whose tag is clear by less than `unsure` have two tags."""
    names, n = model.tagger_.classes_.tolist(), len(sentence.forms)
    k, rows = len(names), [[(form,) for form in sentence.forms]]
    best, gaps = model.tagger_.predict(rows)[0].tolist(), model.tagger_.predict_score_gaps(rows)[0]
    words = np.flatnonzero(gaps < unsure).tolist()
    second = [next(y for y in np.argsort(-tagger_scores[w * k : w * k + k]) if names[y] != best[w]) for w in words]
    changed = [[*best[:w], names[y], *best[w + 1 :]] for w, y in zip(words, second, strict=True)]
    plain, *others = arc_scores(model, [sentence] * (1 + len(words)), [best, *changed])
    pairs, worth = [], []
    for w, y, other in zip(words, second, others, strict=True):
        arcs = [w * (n + 1) + h for h in range(n + 1) if h != w + 1] + [m * (n + 1) + w + 1 for m in range(n) if m != w]
        pairs += [(w, int(y), arc) for arc in arcs]
        worth += (other - plain)[arcs].tolist()
    return np.concatenate((plain, weight * tagger_scores, worth)), (n, k, tuple(pairs))


def compared(model, treebank, n_sentences, unsure, weight):
    """(UAS, accuracy of tags) of the pipeline and of joint decoding, in per cent, and the share of answers that are proven."""
    oracle, right, proven = TagsAndTrees(tree_oracle(model.projective_, model.single_root)), np.zeros((2, 2)), 0
    sentences = treebank.sentences()[:n_sentences]
    tagger, names = model.tagger_, model.tagger_.classes_
    data = tagger.input_.transform([[(form,) for form in one.forms] for one in sentences])
    scores = chain_inference(data, len(names), tagger.coef_).part_scores(tagger.coef_)
    piped = model.predict(treebank.take(np.arange(len(treebank)) < n_sentences))
    for i, (sentence, own, tree) in enumerate(zip(sentences, scores, piped, strict=True)):
        theta, shape = problem(model, sentence, own, unsure, weight)
        labels, bound = oracle.argmax_bound(theta, shape)
        proven += bound - theta[oracle.parts(labels, shape)].sum() < 1e-6
        n, heads, tags = len(sentence.forms), treebank.tree(i).heads, np.array(sentence.upos)
        first = tagger.predict([[(form,) for form in sentence.forms]])[0]
        right[0] += (tree.heads == heads).sum(), (first == tags).sum()
        right[1] += (labels[:n] == heads).sum(), (names[labels[n:]] == tags).sum()
    return 100 * right / sum(len(one.forms) for one in sentences), 100 * proven / len(sentences)


def main():
    """Train a pipeline on Hungarian, choose the weight of the tagger on development data, compare on test data."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few sentences")
    quick = parser.parse_args().quick
    folder = Path(os.environ.get("STRUCTPRED_DATA", "../shared/data")) / "ud_hungarian_szeged"
    if not folder.is_dir():
        sys.exit(f"there is no {folder}: set STRUCTPRED_DATA to the folder of the data")
    train, dev, test = (read_treebank(folder / f"hu_szeged-ud-{part}.conllu.gz") for part in ("train", "dev", "test"))
    kept = np.arange(len(train)) < (200 if quick else len(train))
    model = ParsingPipeline(jackknife=5, labelled=False).fit(train.take(kept))
    weights = [0.3, 1.0, 3.0, 10.0]
    found = [compared(model, dev, 60, 1.0, weight)[0][1, 0] for weight in weights]
    (alone, joint), proven = compared(model, test, 60 if quick else len(test), 1.0, weights[int(np.argmax(found))])
    print(f"pipeline: UAS {alone[0]:.2f} %, tags {alone[1]:.2f} %")
    print(f"together: UAS {joint[0]:.2f} %, tags {joint[1]:.2f} %, {proven:.1f} % of the answers proven best")


if __name__ == "__main__":
    main()
