"""What a document says of its words, by loops over strings: what the tests compare derived columns with."""

from collections import defaultdict
from functools import cache

Row = tuple[str | None, str | None, str | None]


@cache
def of_document(document: tuple[tuple[str, ...], ...]) -> list[Row]:
    """doc_case, doc_before and doc_after of each token of a document, which is a tuple of sentences."""
    places = defaultdict(list)
    for i, words in enumerate(document):
        for k, word in enumerate(words):
            places[word.lower()].append((i, k))
    found: list[Row] = []
    for i, words in enumerate(document):
        for k, word in enumerate(words):
            others = [place for place in places[word.lower()] if place != (i, k)]
            upper = [document[a][b][:1].isupper() for a, b in others if b]
            case = "first-" * (k == 0) + ("all" if all(upper) else "some" if any(upper) else "never")
            before = after = None
            capitals = [(a, b) for a, b in others if document[a][b][:1].isupper()]
            if word[:1].isupper() and capitals:
                a, b = capitals[0]
                before = document[a][b - 1].lower() if b else "_B-1"
                after = document[a][b + 1].lower() if b + 1 < len(document[a]) else "_B+1"
            found.append((case if upper else None, before, after))
    return found
