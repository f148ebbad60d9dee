"""Makes the picture of README.md, docs/images/claim.png, from real predictions, and writes the figures below it to RECORD.

python docs/_site/claim.py

It needs CoNLL-2000 and English EWT (docs/formats.md says where), Chromium, and a CPU minute. The sentences of the picture were
written for it; their tags are predicted, too. Phrases word by word come from a linear classifier over the features of the chain;
heads word by word are each word's best head at the scores of the parser.
"""

import base64
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse

from structpred.evaluation import evaluate_sequences
from structpred.io import Sentence, TemplateFeaturizer, Tree, Treebank, load_templates, read_columns, read_treebank
from structpred.models import ChainLabeler, DependencyParser, LinearClassifier
from structpred.report import draw_spans, draw_tree
from structpred.text.markup import Html

Rows = list[list[tuple[str, ...]]]
Heads = np.ndarray[Any, np.dtype[np.int64]]

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("STRUCTPRED_DATA", ROOT.parent / "shared" / "data"))
PICTURE, RECORD = ROOT / "docs" / "images" / "claim.png", ROOT / "benchmarks" / "results" / "claim.txt"
PHRASES = ["The", "recipe", "asks", "for", "twice", "as", "much", "sugar", "as", "I", "would", "use", "."]
WIDTH = 840  # px
TREE = ["The", "painting", "hanging", "over", "the", "fire", "was", "bought", "by", "a", "collector", "from", "Lisbon", "."]


def rows(sentences: Iterable[Sequence[str]]) -> Rows:
    """Sentences of words as rows of one column."""
    return [[(word,) for word in sentence] for sentence in sentences]


def sentence(forms: Sequence[str], tags: Sequence[str]) -> Sentence:
    """A sentence of which words and universal tags are known."""
    return Sentence(list(forms), *(["_"] * len(forms) if column is None else list(column) for column in (None, tags, None, None)))


class Words:
    """Each token by itself: a linear classifier over the features that the templates make."""

    def fit(self, X: Rows, y: list[list[str]]) -> Self:
        """Train on sentences."""
        self.featurizer = TemplateFeaturizer(load_templates("chunking")).fit(X)
        self.model = LinearClassifier(max_iter=10, random_state=0).fit(self.table(X), [label for labels in y for label in labels])
        return self

    def table(self, X: Rows) -> sparse.csr_matrix:
        """A row for each token."""
        packed = self.featurizer.transform(X)
        shape = len(packed.indptr) - 1, self.featurizer.n_features
        return sparse.csr_matrix((np.ones(len(packed.indices)), packed.indices, packed.indptr), shape=shape)

    def predict(self, X: Rows) -> list[list[str]]:
        """The labels of each sentence."""
        ends = np.cumsum([0, *map(len, X)])
        flat = self.model.predict(self.table(X))
        return [flat[start:stop].tolist() for start, stop in pairwise(ends)]


def tagger(treebank: Treebank, column: str) -> ChainLabeler:
    """A tagger of words for one column of a treebank."""
    sentences = treebank.sentences()
    model = ChainLabeler("sgd", template="pos", max_iter=10, random_state=0)
    return model.fit(rows([one.forms for one in sentences]), [getattr(one, column) for one in sentences])


def heads_alone(parser: DependencyParser, sentences: list[Sentence]) -> list[Heads]:
    """For each word of each sentence the head with the best score, whatever the other words have."""
    _, inference = parser._ready(sentences, None, None, None, None)
    found = []
    for theta in inference.part_scores(parser.coef_):
        n = int(np.sqrt(len(theta)))
        table = np.array(theta[: n * (n + 1)], dtype=float).reshape(n, n + 1)
        table[np.arange(n), np.arange(1, n + 1)] = -np.inf
        found.append(table.argmax(axis=1))
    return found


def is_tree(heads: Heads) -> bool:
    """Whether one word is the root, and every word comes to it."""
    reached = np.arange(len(heads) + 1)
    up = np.array([0, *heads])
    for _ in heads:
        reached = up[reached]
    return (heads == 0).sum() == 1 and not reached.any()


def parsed(figures: list[str]) -> tuple[Html, ChainLabeler]:
    """The tree of one sentence with the arcs that each word chooses alone, and a tagger of columns; adds figures for EWT."""
    train, test = (read_treebank(DATA / "ud_english_ewt" / f"en_ewt-ud-{part}.conllu.gz") for part in ("train", "test"))
    tags = tagger(train, "upos")
    bare = [sentence(one.forms, one.upos) for one in train.sentences()]
    parser = DependencyParser(max_iter=10, random_state=0).fit(Treebank.of(bare, [train.tree(i) for i in range(len(train))]))
    words = [one.forms for one in test.sentences()]
    found = tags.predict(rows(words))
    right = np.concatenate(found) == np.array(test.upos)
    own = [sentence(*both) for both in zip(words, found, strict=True)]
    trees, alone = parser.predict(own), heads_alone(parser, own)
    uas = np.concatenate([tree.heads for tree in trees]) == test.heads
    las = uas & (np.array([label.partition(":")[0] for tree in trees for label in tree.labels])
                 == np.array([label.partition(":")[0] for label in test.labels]))  # fmt: skip
    figures.append(f"English EWT, test file, from words: tags {right.mean():.1%}, UAS {uas.mean():.1%}, LAS {las.mean():.1%}")
    broken, each = np.mean([not is_tree(heads) for heads in alone]), np.concatenate(alone) == test.heads
    figures.append(f"heads word by word: no tree in {broken:.1%} of the sentences, UAS {each.mean():.1%}")
    one = sentence(TREE, tags.predict(rows([TREE]))[0])
    (tree,), (each,) = parser.predict([one]), heads_alone(parser, [one])
    labels = [label if a == b else "" for label, a, b in zip(tree.labels, each, tree.heads, strict=True)]
    return draw_tree(TREE, Tree(each, labels), gold=tree, tags=one.upos), tagger(train, "xpos")


def phrases(xpos: ChainLabeler, figures: list[str]) -> tuple[Html, Html]:
    """The phrases of one sentence, word by word and as a sequence; figures on the test file of CoNLL-2000 join `figures`."""
    train, test = (read_columns(DATA / "conll2000" / f"{part}.txt.gz") for part in ("train", "test"))
    X, known = ([[row[:2] for row in one] for one in part.sentences()] for part in (train, test))
    words = Words().fit(X, train.labels())
    chain = ChainLabeler("sgd", C=0.5, template="chunking", max_iter=15, random_state=0).fit(train, train.labels())
    for name, model in (("word by word", words), ("as a sequence", chain)):
        found = evaluate_sequences(test.labels(), model.predict(known))
        figures.append(f"CoNLL-2000, test file, {name}: F1 {found.f1:.1%}, whole sentences {found.sequence_accuracy:.1%}")
    one = list(zip(PHRASES, map(str, xpos.predict(rows([PHRASES]))[0]), strict=True))
    (alone,), (together,) = words.predict([one]), [labels.tolist() for labels in chain.predict([one])]
    return draw_spans(PHRASES, alone, gold=together), draw_spans(PHRASES, together)


#: of the drawing against the other labelling only the first line is shown
PAGE = """<!doctype html><meta charset="utf-8">
<style>
body {{ margin: 0; padding: 12px 18px; background: white; font: 16px sans-serif; color: #222 }}
p {{ margin: 14px 0 2px }} p:first-child {{ margin-top: 0 }} small {{ color: #555 }}
.alone > div > div:first-child, .alone > div > div:nth-child(n + 3) {{ display: none }}
</style>
<body><p><b>Phrases</b></p>
<small>word by word</small><div class="alone">{alone}</div>
<small>as a sequence</small>{together}
<p><b>A dependency tree.</b> Red: the head that a word chooses alone. Green: its head in the best tree.</p>
{tree}</body>"""


def main() -> None:
    """Draw."""
    figures: list[str] = []
    tree, xpos = parsed(figures)
    alone, together = phrases(xpos, figures)
    RECORD.write_text("".join(f"{line}\n" for line in figures), encoding="utf-8")
    sys.path.insert(0, str(ROOT / "tests"))
    from browser import browser

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "claim.html"
        page.write_text(PAGE.format(alone=alone, together=together, tree=tree), encoding="utf-8")
        height = browser().evaluate(page, WIDTH, "document.body.offsetHeight")
        area = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1.5}
        answer = browser().call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=area)
    PICTURE.write_bytes(base64.b64decode(answer["data"]))


if __name__ == "__main__":
    main()
