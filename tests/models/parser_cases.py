"""A small language with trees, for the tests of the parser: subject, verb, object, adverbs, and relative words that are moved."""

from typing import Any

import numpy as np

from structpred.io import Tree, Treebank

DETERMINERS, ADJECTIVES, NOUNS = ["the", "a"], ["old", "red", "small"], ["dog", "cat", "tree", "bird", "child"]
VERBS, ADVERBS = ["sees", "likes", "finds", "follows"], ["today", "often"]

Tokens = list[dict[str, str]]
Arcs = list[tuple[int, str]]


def sentence(rng: np.random.Generator, moved: float) -> tuple[Tokens, Arcs]:
    """Words with the keys form, lemma and upos, and (head, relation) of each; with probability `moved` two arcs cross."""
    tokens: Tokens = []
    arcs: Arcs = []

    def word(form: str, upos: str, head: int, relation: str) -> int:
        tokens.append({"form": form, "lemma": form[:3], "upos": upos})
        arcs.append((head, relation))
        return len(tokens)

    def phrase(relation: str, later: int) -> int:
        """A noun with what stands before it; its head is put in `later`."""
        own = [("DET", "det", DETERMINERS)] * int(rng.random() < 0.7)
        own += [("ADJ", "amod", ADJECTIVES)] * int(rng.integers(0, 3))
        noun = len(tokens) + len(own) + 1
        for upos, name, forms in own:
            word(str(rng.choice(forms)), upos, noun, name)
        return word(str(rng.choice(NOUNS)), "NOUN", later, relation)

    subject = phrase("nsubj", 0)
    verb = word(str(rng.choice(VERBS)), "VERB", 0, "root")
    arcs[subject - 1] = (verb, "nsubj")
    if rng.random() < 0.7:
        phrase("obj", verb)
    if rng.random() < 0.5:
        word(str(rng.choice(ADVERBS)), "ADV", verb, "advmod")
    if rng.random() < moved:
        word("who", "PRON", subject, "acl")  # away from its noun: its arc spans the verb, and crosses that of the root
    word(".", "PUNCT", verb, "punct")
    return tokens, arcs


def corpus(n: int, seed: int = 0, moved: float = 0.0) -> tuple[list[Tokens], list[Arcs]]:
    """n sentences and their trees."""
    rng = np.random.default_rng(seed)
    pairs = [sentence(rng, moved) for _ in range(n)]
    return [tokens for tokens, _ in pairs], [arcs for _, arcs in pairs]


def heads_of(trees: list[Tree]) -> list[list[int]]:
    """The heads as plain lists."""
    return [tree.heads.tolist() for tree in trees]


def plain(trees: list[Tree]) -> list[tuple[list[int], list[str] | None]]:
    """Heads and relations as plain lists."""
    return [(tree.heads.tolist(), tree.labels) for tree in trees]


def gold_heads(y: list[Arcs]) -> list[list[int]]:
    """The heads of trees that are given as pairs."""
    return [[head for head, _ in arcs] for arcs in y]


def is_tree(heads: list[int], *, single_root: bool = True, projective: bool = False) -> bool:
    """By the definition: everything reaches the root, with one child if `single_root`, and no arcs cross if `projective`."""
    if single_root and heads.count(0) != 1:
        return False
    for word in range(1, len(heads) + 1):
        steps = 0
        while word and steps <= len(heads):
            word, steps = heads[word - 1], steps + 1
        if word:
            return False
    arcs = [(min(m, h), max(m, h)) for m, h in enumerate(heads, 1)]
    return not projective or not any(a < c < b < d for a, b in arcs for c, d in arcs)


def as_bank(X: list[Tokens], y: list[Arcs]) -> Treebank:
    """The same sentences as a treebank."""
    from structpred.models.parser.sentences import as_treebank

    return as_treebank(X, y)


def random_corpus(lengths: list[int], seed: int = 0) -> tuple[list[Any], list[list[int]]]:
    """Random words and random trees: nothing to learn, but everything differs."""
    from structpred.oracles.arborescence import ArborescenceOracle

    rng = np.random.default_rng(seed)
    X = random_words(lengths, rng)
    y = [ArborescenceOracle().argmax(rng.normal(size=n * (n + 1)), (n,)).tolist() for n in lengths]
    return X, y


def random_words(lengths: list[int], rng: np.random.Generator) -> list[Any]:
    """Sentences of these lengths; nothing is compiled for them."""
    return [[{"form": f"w{rng.integers(9)}", "upos": str(rng.choice(["A", "B", "C"]))} for _ in range(n)] for n in lengths]
