"""Derived columns."""

import pytest

from structpred.errors import ParameterError
from structpred.io.templates.templates import transform


@pytest.mark.parametrize(
    ("name", "word", "expected"),
    [
        ("", "Word", "Word"),
        ("lower", "WORD", "word"),
        ("shape", "Ab-9é", "Xx-0x"),
        ("short_shape", "ABC--12", "X-0"),
        ("is_digit", "1998", "yes"),
        ("is_digit", "19a", None),
        ("has_digit", "19a", "yes"),
        ("has_digit", "a", None),
        ("is_title", "Word", "yes"),
        ("is_title", "WORD", None),
        ("is_upper", "WORD", "yes"),
        ("has_hyphen", "a-b", "yes"),
        ("prefix2", "word", "wo"),
        ("suffix4", "word", "word"),
        ("suffix5", "word", None),
        ("lower_prefix2", "WORD", "wo"),
        ("lower_suffix3", "Word", "ord"),
        ("lower_suffix5", "Word", None),
    ],
)
def test_values(name: str, word: str, expected: str | None) -> None:
    """Each transform gives the derived string, or None where there is no such feature."""
    assert transform(name)(word) == expected


@pytest.mark.parametrize(
    "name", ["upper", "prefix", "suffix0", "prefix100", "suffix-1", "lower_prefix", "upper_suffix2", ["lower"], None]
)
def test_unknown_names(name: object) -> None:
    """An unknown transform is refused, with the list of those there are."""
    with pytest.raises(ParameterError, match=r"expected a transform \(has_digit"):
        transform(name)  # type: ignore[arg-type]
