"""The script that a user of python-crfsuite writes to label a CoNLL-2000 file: ``python crfsuite_tagger.py MODEL DATA > OUT``.

It stands alone, so that the whole process loads nothing but what it needs.
"""

import sys
from collections.abc import Iterator

import pycrfsuite


def features(words: list[str], tags: list[str]) -> Iterator[list[str]]:
    """The template of CRFsuite's chunking example, for each token."""
    last = len(words) - 1
    for t in range(len(words)):
        near = [k for k in range(-2, 3) if 0 <= t + k <= last]
        token = [f"w[{k}]={words[t + k]}" for k in near]
        token += [f"w[{k}]|w[{k + 1}]={words[t + k]}|{words[t + k + 1]}" for k in (-1, 0) if k in near and k + 1 in near]
        token += [f"pos[{k}]={tags[t + k]}" for k in near]
        token += [f"pos[{k}]|pos[{k + 1}]={tags[t + k]}|{tags[t + k + 1]}" for k in near if k + 1 in near]
        token += [
            f"pos[{k}]|pos[{k + 1}]|pos[{k + 2}]={tags[t + k]}|{tags[t + k + 1]}|{tags[t + k + 2]}" for k in near if k + 2 in near
        ]
        yield token + ["__BOS__"] * (t == 0) + ["__EOS__"] * (t == last)


def main(model: str, data: str) -> None:
    """Read, label, write."""
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    with open(data, encoding="utf-8") as file:
        blocks = file.read().split("\n\n")
    for block in blocks:
        if rows := [line.split(" ") for line in block.split("\n") if line]:
            labels = tagger.tag(list(features([row[0] for row in rows], [row[1] for row in rows])))
            sys.stdout.write("".join(f"{' '.join(row)} {label}\n" for row, label in zip(rows, labels, strict=True)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
