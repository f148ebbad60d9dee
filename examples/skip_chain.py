"""Names over whole documents: a chain for each sentence, and links between equal capitalised words (skip chains).

A word that is a person in one sentence is most often a person in the next one. A labeler of single sentences cannot know that; a
composition of chains and links can, and its answers are proven best. Sutton & McCallum, Introduction to conditional random
fields, 2012, section 2.6. The data are named entities in Norwegian Nynorsk, read in place.

    STRUCTPRED_DATA=/data python examples/skip_chain.py
    STRUCTPRED_DATA=/data python examples/skip_chain.py --quick
"""

import argparse
import os
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from structpred.evaluation import evaluate_sequences
from structpred.io import read_columns
from structpred.models import ChainLabeler
from structpred.models.chain.decoding import chain_inference
from structpred.oracles import Agreement, ChainOracle, Composed
from structpred.oracles.composition.layout import Member


class SkipChains(Composed):
    """Sentences of one document, and links: shape = (n_labels, lengths of sentences, ((sentence, token, sentence, token), ...)).

    The parts are those of each chain, one chain after the other, and for each link "both tokens have label l". The labels are
    those of all tokens.
    """

    chain, link = ChainOracle(), Agreement()

    def members(self, shape):
        """Chains first, then links."""
        n_labels, lengths, links = shape
        ends = np.cumsum([0, *(length * n_labels + n_labels**2 for length in lengths)])
        found = [Member(self.chain, (t, n_labels), np.arange(a, b)) for t, a, b in zip(lengths, ends, ends[1:], strict=False)]
        label = np.arange(n_labels)
        for k, (i, t, j, s) in enumerate(links):
            places = ends[i] + t * n_labels + label, ends[j] + s * n_labels + label, ends[-1] + k * n_labels + label
            found.append(Member(self.link, (n_labels,), np.concatenate(places)))
        return found

    def output_of(self, answers, shape):
        """The labels of the chains, one after the other."""
        return np.concatenate(answers[: len(shape[1])])

    def parts(self, labels, shape):
        """The parts of each chain, and those of links between equal labels."""
        n_labels, lengths, links = shape
        rows, found, first = np.split(labels, np.cumsum(lengths)[:-1]), [], 0
        for length, row in zip(lengths, rows, strict=True):
            found.append(first + self.chain.parts(row, (length, n_labels)))
            first += length * n_labels + n_labels**2
        same = [first + k * n_labels + rows[i][t] for k, (i, t, j, s) in enumerate(links) if rows[i][t] == rows[j][s]]
        return np.concatenate([*found, np.array(same, dtype=np.int64)])


def links_of(sentences):
    """Each capitalised word with the next sentence that has it; words that stand first in a sentence are left out."""
    seen, found = defaultdict(list), []
    for i, words in enumerate(sentences):
        for t, word in enumerate(words[1:], 1):
            if word[:1].isupper() and len(word) > 1:
                if seen[word] and seen[word][-1][0] != i:
                    found.append((*seen[word][-1], i, t))
                seen[word].append((i, t))
    return found


def documents(model, corpus):
    """Of each document the part scores of its sentences and their links, in the numbers of sentences of the corpus."""
    inference = chain_inference(model.input_.transform(corpus), len(model.classes_), model.coef_)
    scores, sentences = list(inference.part_scores(model.coef_)), corpus.sentences()
    for document in np.unique(corpus.document_of):
        rows = np.flatnonzero(corpus.document_of == document)
        yield rows, [scores[i] for i in rows], links_of([[token[0] for token in sentences[i]] for i in rows])


def decode(oracle, model, corpus, reward):
    """The labels of each sentence; reward: what a link of equal labels brings that are not O."""
    found, n_labels = [None] * len(corpus), len(model.classes_)
    worth = np.where(model.classes_ == "O", 0.0, reward)
    for rows, scores, links in documents(model, corpus):
        lengths = tuple(len(score) // n_labels - n_labels for score in scores)
        theta = np.concatenate([*scores, np.tile(worth, len(links))])
        labels = oracle.argmax(theta, (n_labels, lengths, tuple(links)))
        for i, own in zip(rows, np.split(labels, np.cumsum(lengths)[:-1]), strict=True):
            found[i] = model.classes_[own].tolist()
    return found


def f1(gold, found):
    """F1 of entities, in per cent; labels are kinds, so that neighbours of one kind are one entity."""
    tags = [[label if label == "O" else f"I-{label}" for label in labels] for labels in found]
    return 100.0 * evaluate_sequences(gold, tags).f1


def main():
    """Train on sentences, choose the reward on held-out documents, decode others alone and together."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="train on a fifth of the documents")
    quick = parser.parse_args().quick
    folder = Path(os.environ.get("STRUCTPRED_DATA", "../shared/data")) / "ner_norwegian_nynorsk"
    if not folder.is_dir():
        sys.exit(f"there is no {folder}: set STRUCTPRED_DATA to the folder of the data")
    corpus, test = (read_columns(folder / name, tabs=True) for name in ("train.tsv.gz", "dev.tsv.gz"))
    first = np.searchsorted(corpus.document_of, [30 if quick else 139, 40 if quick else 159])
    train, held_out = corpus.take(0, first[0]), corpus.take(*first)
    kinds = [[label.rpartition("-")[2] for label in labels] for labels in train.labels()]
    model, oracle = ChainLabeler(template="ner", max_iter=5 if quick else 10).fit(train, kinds), SkipChains([])
    rewards = [0.0, 0.1, 0.2, 0.4, 0.8]
    scores = [f1(held_out.labels(), decode(oracle, model, held_out, reward)) for reward in rewards]
    print("held-out documents: " + ", ".join(f"reward {r}: F1 {s:.2f} %" for r, s in zip(rewards, scores, strict=True)))
    alone = f1(test.labels(), model.predict(test))
    start = time.process_time()
    together = f1(test.labels(), decode(oracle, model, test, rewards[int(np.argmax(scores))]))
    print(f"sentences alone: F1 {alone:.2f} %")
    print(f"documents with links: F1 {together:.2f} %, proven best, {time.process_time() - start:.1f} CPU seconds")


if __name__ == "__main__":
    main()
