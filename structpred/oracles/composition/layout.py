"""Which member of a composition holds which part: copies in flat arrays, of one shape and of a batch."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from structpred.core.oracle import Oracle, Shape
from structpred.core.types import Floats, Integers
from structpred.errors import DataError, OracleError
from structpred.runtime.ranges import ends_of


class Member(NamedTuple):
    """One oracle of a composition: its shape there, and parts[j], which part of the whole its part j is."""

    oracle: Oracle
    shape: Shape
    parts: Integers


class Layout(NamedTuple):
    """The copies of a shape's parts, member by member.

    copy_ends: member k has the copies copy_ends[k] to copy_ends[k + 1]. part_of: the part of each copy. holders: the number of
    copies of each part. shared: the parts with more than one copy; copies: these, part by part, in the order of members.
    groups: each oracle with the numbers of its members.
    """

    members: list[Member]
    copy_ends: Integers
    part_of: Integers
    holders: Integers
    shared: Integers
    copies: Integers
    groups: list[tuple[Oracle, Integers]]


def layout_of(members: Sequence[Member], name: str) -> Layout:
    """The layout of these members. OracleError where they do not fit their parts, and for a part that no member holds."""
    found, of_oracle = [], dict[int, list[int]]()
    for k, member in enumerate(members):
        if not member.oracle.exact:
            raise OracleError(
                f"{name}: member {k} ({type(member.oracle).__name__}) may miss its best output: no bound would hold"
            )
        parts, size = np.asarray(member.parts), member.oracle.n_parts(member.shape)
        if parts.shape != (size,) or (parts.dtype.kind not in "iu" and size) or (size and parts.min() < 0):
            raise OracleError(
                f"{name}: member {k} ({type(member.oracle).__name__}) has {size} parts in the shape {member.shape!r}: expected "
                f"as many whole numbers >= 0 that say which parts of the whole they are, got {parts.dtype} of shape {parts.shape}"
            )
        found.append(parts.astype(np.int64))
        of_oracle.setdefault(id(member.oracle), []).append(k)
    part_of = np.concatenate(found)
    holders = np.bincount(part_of)
    if not holders.all():
        raise OracleError(f"{name}: no member holds part {holders.argmin()}, of {len(holders)}")
    order = np.argsort(part_of, kind="stable")
    return Layout(
        list(members), ends_of(np.array([len(parts) for parts in found])), part_of, holders, np.flatnonzero(holders > 1),
        order[holders[part_of[order]] > 1], [(members[rows[0]].oracle, np.array(rows)) for rows in of_oracle.values()],
    )  # fmt: skip


class Batch:
    """The layouts of several instances, one after the other: the arrays of `Layout`, with numbers that count through.

    part_ends, member_ends, slot_ends: instance i has the parts, members and shared parts from there on. slot_of: the instance of
    each member; member_of: the member of each copy. Shared part i has the copies from shared_ends[i] on. groups: each oracle with
    its members in all instances, and their shapes.
    """

    def __init__(self, layouts: Sequence[Layout]) -> None:
        sizes = [(len(one.holders), len(one.members), len(one.shared), len(one.part_of)) for one in layouts]
        self.part_ends, self.member_ends, self.slot_ends, copies = map(ends_of, np.array(sizes).T)
        self.copy_ends = np.append(_joined([one.copy_ends[:-1] for one in layouts], copies), copies[-1])
        self.part_of = _joined([one.part_of for one in layouts], self.part_ends)
        self.holders = np.concatenate([one.holders for one in layouts])
        self.shared_ends = ends_of(self.holders[self.holders > 1])
        self.copies = _joined([one.copies for one in layouts], copies)
        self.slot_of = np.repeat(np.arange(len(layouts)), np.diff(self.member_ends))
        self.member_of = np.repeat(np.arange(len(self.slot_of)), np.diff(self.copy_ends))
        groups: dict[int, tuple[Oracle, list[Integers], list[Shape]]] = {}
        for first, one in zip(self.member_ends.tolist(), layouts, strict=False):
            for oracle, rows in one.groups:
                _, members, shapes = groups.setdefault(id(oracle), (oracle, [], []))
                members.append(rows + first)
                shapes += [one.members[k].shape for k in rows.tolist()]
        self.groups = [(oracle, np.concatenate(members), shapes) for oracle, members, shapes in groups.values()]

    def centred(self, starts: Sequence[Floats | None], most: Floats) -> Floats:
        """Multipliers that sum to zero for each part, from any numbers, which are cut off at +-most; None stands for zeros."""
        sizes = np.diff(self.copy_ends[self.member_ends]).tolist()
        given = [np.zeros(size) if start is None else start for size, start in zip(sizes, starts, strict=True)]
        for i, (size, start) in enumerate(zip(sizes, given, strict=True)):
            if np.shape(start) != (size,) or np.isnan(start).any():
                raise DataError(f"sample {i}: expected a start of {size} numbers, got the shape {np.shape(start)}, or NaN")
        found = np.clip(np.concatenate(given), -(limits := np.repeat(most, sizes)), limits)
        return found - (np.bincount(self.part_of, found) / self.holders)[self.part_of]


def _joined(pieces: Sequence[Integers], starts: Integers) -> Integers:
    """The pieces in one array, with starts[i] added to all of piece i."""
    return np.concatenate(pieces) + np.repeat(starts[:-1], [len(piece) for piece in pieces])
