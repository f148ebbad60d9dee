"""The score that forbids a part."""

#: the score of what is forbidden: finite, so that sums stay finite, and so low that no weights make up for it
FORBIDDEN = -1e30
