"""Memory of the active sets of many instances: each slot has room of its own size, which doubles when it is full."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from structpred.core.types import AnyArray, Integers
from structpred.errors import DataError
from structpred.runtime.memory import check_fits

#: the number of vertices that there is room for at first
_FIRST = 8
#: arrays of `saved`: type, which of the three numbers of _used they are as long as (None: the slots), and how many times
_SAVED: dict[str, tuple[type, int | None, int]] = {
    "versions": (np.int64, None, 1), "_sizes": (np.int64, None, 1), "_caps": (np.int64, None, 1), "_widths": (np.int64, None, 1),
    "_spares": (np.int64, None, 1), "_at": (np.int64, None, 1), "_weights": (np.float64, 0, 1), "_lengths": (np.int64, 0, 2),
    "_factors": (np.float64, 1, 1), "_parts": (np.int64, 2, 1),
}  # fmt: skip


class ActivePools:
    """Flat pools of weights, factors and part lists, with the place of each slot in them (`_lockstep_kernels` says how they lie).

    Attributes
    ----------
    versions : array
        A number a slot that grows each time its instance is solved for.
    """

    def __init__(self) -> None:
        self.n_slots = 0
        self.versions: Integers = np.zeros(0, dtype=np.int64)
        self._sizes, self._caps, self._widths, self._spares = (np.zeros(0, dtype=np.int64) for _ in range(4))
        self._at = np.zeros((0, 3), dtype=np.int64)
        self._used: Integers = np.zeros(3, dtype=np.int64)
        self._weights, self._factors = np.zeros(0), np.zeros(0)
        self._parts, self._lengths = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)

    @property
    def arrays(self) -> tuple[AnyArray, ...]:
        """What kernels take."""
        sizes = (self._sizes, self._caps, self._widths)
        return (*sizes, self._weights, self._factors, self._parts, self._lengths, self._at, self._spares)

    @property
    def n_bytes(self) -> int:
        """The bytes in use."""
        return int(self._used @ np.array([24, 8, 8]))

    def bytes_of(self, slots: Integers) -> Integers:
        """The bytes that each slot uses."""
        caps = self._caps[slots]
        return 24 * caps + 4 * caps * (caps + 1) + 16 * caps * self._widths[slots]

    def new_slot(self) -> int:
        """An empty slot without room."""
        if self.n_slots == len(self._sizes):
            more = max(64, self.n_slots)
            for name in ("versions", "_sizes", "_caps", "_widths", "_spares"):
                setattr(self, name, np.concatenate((getattr(self, name), np.zeros(more, dtype=np.int64))))
            self._at = np.concatenate((self._at, np.zeros((more, 3), dtype=np.int64)))
        self.n_slots += 1
        return self.n_slots - 1

    def clear(self, slot: int) -> None:
        """Forget the slot's vertices, not its room."""
        self._sizes[slot] = self._spares[slot] = 0

    def reserve(self, slots: Integers, lengths: Integers) -> None:
        """Room for one more vertex in each slot, of these numbers of parts. Raises DataError where memory lacks."""
        short = (self._sizes[slots] >= self._caps[slots]) | (lengths > self._widths[slots])
        if not short.any():
            return
        slots, lengths = slots[short], lengths[short]
        full = self._sizes[slots] >= self._caps[slots]
        caps = np.where(full, np.maximum(2 * self._caps[slots], _FIRST), self._caps[slots])
        self._copy(self, slots, slots, caps, np.maximum(self._widths[slots], lengths))

    def only(self, slots: Integers) -> "ActivePools":
        """Pools of their own with a copy of these slots, numbered anew."""
        kept = ActivePools()
        for _ in slots:
            kept.new_slot()
        kept.versions[: len(slots)] = self.versions[slots]
        kept._copy(self, slots, np.arange(len(slots)), self._caps[slots], self._widths[slots])
        return kept

    def saved(self) -> dict[str, AnyArray]:
        """All of it as arrays, room that is no longer in use included: what follows then has the same bits."""
        found = {"used": self._used.copy()}
        for name, (_, k, times) in _SAVED.items():
            found[name.strip("_")] = getattr(self, name)[: self.n_slots if k is None else times * int(self._used[k])].copy()
        return found

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> "ActivePools":
        """The inverse of `saved`. Raises DataError for arrays that do not fit together, as a damaged file has them."""
        new = cls()
        given = {name: np.asarray(saved.get(name.strip("_"))) for name in ("_used", *_SAVED)}
        used, n = given.pop("_used"), len(np.atleast_1d(given["versions"]))
        if used.dtype != np.int64 or used.shape != (3,) or (used < 0).any():
            raise DataError("saved active sets: expected three lengths")
        for name, (kind, k, times) in _SAVED.items():
            shape = (n, 3) if name == "_at" else (n,) if k is None else (times * int(used[k]),)
            if given[name].dtype != kind or given[name].shape != shape:
                raise DataError(f"saved active sets: expected {name.strip('_')} of shape {shape}, got {given[name].shape}")
            setattr(new, name, given[name].copy())
        new.n_slots, new._used = n, used.copy()
        caps, needed = new._caps, np.stack((new._caps, new._caps * (new._caps + 1) // 2, 2 * new._caps * new._widths), axis=1)
        fits = (new._sizes >= 0) & (new._sizes <= caps) & (new._widths >= 0) & (caps < 1 << 31) & (new._widths < 1 << 30)
        fits &= (new._spares >= 0) & (new._spares <= caps)
        if not (fits.all() and ((new._at >= 0) & (new._at <= used)).all() and (new._at + needed <= used).all()):
            raise DataError("saved active sets: they lie outside of their room")
        return new

    def within(self, slot: int, n_parts: int) -> bool:
        """Whether all parts of the slot's vertices are below n_parts: of read sets nobody knows."""
        cap, width = int(self._caps[slot]), int(self._widths[slot])
        start, first = 2 * int(self._at[slot, 0]), int(self._at[slot, 2])
        rows = np.concatenate((np.arange(self._sizes[slot]), cap + np.arange(self._spares[slot])))
        lengths = self._lengths[start : start + 2 * cap][rows]
        parts = self._parts[first : first + 2 * cap * width].reshape(2 * cap, width)[rows]
        if not ((lengths >= 0) & (lengths <= width)).all():
            return False
        used = parts[np.arange(width) < lengths[:, None]]
        return bool(((used >= 0) & (used < n_parts)).all())

    def _copy(self, source: "ActivePools", slots: Integers, targets: Integers, caps: Integers, widths: Integers) -> None:
        """Slots of other pools, or of these, to new places behind all others, with room for caps vertices of widths parts."""
        from structpred.projections._lockstep_kernels import move_slots

        needed = np.stack((caps, caps * (caps + 1) // 2, 2 * caps * widths), axis=1)
        ends = np.cumsum(needed, axis=0)
        at = self._used + ends - needed
        self._used = self._used + (ends[-1] if len(ends) else np.zeros(3, dtype=np.int64))
        rows, factors, parts = self._used.tolist()
        for name, used in (("_weights", rows), ("_lengths", 2 * rows), ("_factors", factors), ("_parts", parts)):
            old = getattr(self, name)
            if used > len(old):
                size = max(2 * len(old), used)
                check_fits(8 * size, "the active vertices of these projections")
                setattr(self, name, np.concatenate((old, np.zeros(size - len(old), dtype=old.dtype))))
        move_slots(source.arrays, slots, self.arrays, targets, caps, widths, at)
