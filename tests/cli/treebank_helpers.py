"""A small treebank for the tests of the command line: rules with exceptions, and all kinds of lines that CoNLL-U knows."""

import numpy as np

# (form, upos, head, relation) of each word; the last one has crossing arcs
PATTERNS = (
    (("the", "DET", 2, "det"), ("cat", "NOUN", 3, "nsubj"), ("sees", "VERB", 0, "root"), ("birds", "NOUN", 3, "obj"),
     (".", "PUNCT", 3, "punct")),
    (("old", "ADJ", 2, "amod"), ("dogs", "NOUN", 3, "nsubj:pass"), ("sleep", "VERB", 0, "root"), ("under", "ADP", 6, "case"),
     ("the", "DET", 6, "det"), ("tree", "NOUN", 3, "obl")),
    (("birds", "NOUN", 2, "nsubj"), ("sing", "VERB", 0, "root"), ("and", "CCONJ", 4, "cc"), ("fly", "VERB", 2, "conj"),
     ("!", "PUNCT", 2, "punct")),
    (("what", "PRON", 4, "obj"), ("cat", "NOUN", 3, "nsubj"), ("wants", "VERB", 0, "root"), ("see", "VERB", 3, "xcomp"),
     ("?", "PUNCT", 3, "punct")),
)  # fmt: skip
N_PROJECTIVE = 3


def treebank_text(n_sentences: int, seed: int, *, crossing: bool = False) -> str:
    """CoNLL-U text: comments, a multiword token, an empty node, MISC; rare words and odd arcs, so that not all is easy."""
    rng = np.random.default_rng(seed)
    lines = []
    for k in range(n_sentences):
        words = PATTERNS[rng.integers(len(PATTERNS) if crossing else N_PROJECTIVE)]
        lines += [f"# sent_id = {k}", f"# text = {' '.join(word[0] for word in words)}"]
        for number, (form, upos, head, relation) in enumerate(words, 1):
            shown = f"{form}{rng.integers(50)}" if rng.random() < 0.2 and upos != "PUNCT" else form
            if upos == "PUNCT" and rng.random() < 0.2:
                head, relation = number - 1, "dep"
            tag = "X" if rng.random() < 0.05 else upos
            if number == 1 and k % 4 == 0:
                lines.append("1-2\tboth\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No")
            feats = "Case=Nom" if relation.startswith("nsubj") else "_"
            lines.append(f"{number}\t{shown}\t{form}\t{tag}\t_\t{feats}\t{head}\t{relation}\t{head}:{relation}\tTranslit=a b")
            if number == 2 and k % 5 == 0:
                lines.append("2.1\tgap\t_\tVERB\t_\t_\t_\t_\t0:root\t_")
        lines.append("")
    return "\n".join(lines) + "\n"


def without_heads(text: str) -> str:
    """The same text with _ for every head and relation."""
    return "".join(_bare(line) for line in text.splitlines(keepends=True))


def others(text: str) -> list[list[str]]:
    """The lines in columns, without those of head and relation where the line is a word's."""
    return [_columns(line) for line in text.split("\n")]


def _columns(line: str) -> list[str]:
    columns = line.split("\t")
    return columns[:6] + columns[8:] if columns[0].isdigit() else columns


def _bare(line: str) -> str:
    columns = line.split("\t")
    if columns[0].isdigit():
        columns[6:8] = ["_", "_"]
    return "\t".join(columns)
