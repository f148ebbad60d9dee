"""Workers of the tests compile each kernel once between them."""

import multiprocessing
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="locks are those of POSIX")


def some_kernel() -> None:
    """Its name is all that counts here."""


def test_a_kernel_that_another_process_compiles_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes second waits until the kernel is kept, and finds it; other kernels are nobody's business."""
    import kernel_turns

    kept, parent = tmp_path / "kernel", kernel_turns.Turns.__base__
    monkeypatch.setattr(parent, "load_overload", lambda self, sig, context: kept.read_text() if kept.exists() else None)
    monkeypatch.setattr(parent, "save_overload", lambda self, sig, data: kept.write_text(data))
    cache: Any = kernel_turns.Turns(some_kernel, tmp_path / "a.py", b"")
    mine = multiprocessing.get_context("fork").Event()

    def compile_slowly() -> None:
        assert cache.load_overload("(i8,)", None) is None
        mine.set()
        time.sleep(0.3)
        cache.save_overload("(i8,)", "machine code")

    process = multiprocessing.get_context("fork").Process(target=compile_slowly)
    process.start()
    assert mine.wait(60)
    assert cache.load_overload("(f8,)", None) is None
    kernel_turns.end_turn()
    assert cache.load_overload("(i8,)", None) == "machine code"
    process.join(60)
    assert process.exitcode == 0
