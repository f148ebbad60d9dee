"""What cannot fit is refused with figures; where the system says nothing, nothing is refused."""

import pytest

from structpred.errors import DataError
from structpred.runtime import memory
from structpred.runtime.memory import available_bytes, check_fits


def test_the_system_says_how_much_there_is() -> None:
    """A number of bytes between a megabyte and an exbibyte."""
    free = available_bytes()
    assert free is None or 1 << 20 < free < 1 << 60


def test_the_message_has_purpose_need_and_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """What for, how much, how much there is, and what to do."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 2 << 30)
    with pytest.raises(DataError, match=r"^a table would need 3\.5 GiB, and 2\.0 GiB are available; split the input"):
        check_fits(7 << 29, "a table")
    check_fits(2 << 30, "a table that just fits")


def test_an_impossible_size_is_refused_on_any_machine() -> None:
    """2^60 bytes do not fit anywhere."""
    if available_bytes() is not None:
        with pytest.raises(DataError, match="would need"):
            check_fits(1 << 60, "a table")


def test_unknown_memory_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system does not say what it has, the allocation itself must tell."""
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    check_fits(1 << 60, "a table")


def test_without_proc_the_system_is_asked_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """No /proc/meminfo: sysconf answers, or None."""

    def no_file(*args: object, **options: object) -> None:
        raise OSError("no such file")

    monkeypatch.setattr("builtins.open", no_file)
    free = available_bytes()
    assert free is None or free > 0
    monkeypatch.setattr(memory.os, "sysconf", no_file)
    assert available_bytes() is None
