"""Linkers for the tests of plug-ins: one that links like `nearest`, and others with a fault."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fet

Found = tuple[Any, Any]


@fet.linker
class Nearest:
    """Links the nearest records by Euclidean distance."""

    independent = True

    def __init__(self, power: int = 2) -> None:
        self.power = power

    def link(self, queries: Any, records: Any, neighbours: int, seed: int) -> Found:
        table = pd.DataFrame(records)
        indices, similarities = [], []
        for query in queries:
            distances = (table - query).pow(self.power).sum(axis=1).pow(1 / self.power)
            nearest = distances.sort_values(kind="stable")[:neighbours]
            indices.append(nearest.index)
            similarities.append(-nearest)
        return np.array(indices), np.array(similarities)


@fet.linker
class Fuzzy:
    """Links texts by the share of common letters."""

    takes = "text"
    floor = 0.0

    def link(self, queries: Any, records: Any, neighbours: int, seed: int) -> Found:
        def letters(row: Any) -> set[str]:
            return {letter for letter in "".join(row).lower() if letter.isalnum()}

        sets = [letters(row) for row in records]
        shares = np.array([[len(one & two) / max(1, len(one | two)) for two in sets] for one in map(letters, queries)])
        order = np.argsort(-shares, axis=1, kind="stable")[:, :neighbours]
        return order, np.take_along_axis(shares, order, axis=1)


class Alike:
    """Links the first records, with equal similarities also for empty texts."""

    takes = "text"

    def link(self, queries: Any, records: Any, neighbours: int, seed: int) -> Found:
        return np.tile(np.arange(neighbours), (len(queries), 1)), np.ones((len(queries), neighbours))


@fet.linker
class Same(Alike):
    """States its floor."""

    floor = 0.0


@fet.linker
class NoFloor(Alike):
    """Lacks a floor."""


@fet.linker
class Place:
    """Links the first records, without similarities."""

    similarities = False
    takes = "either"

    def link(self, queries: Any, records: Any, neighbours: int, seed: int) -> Found:
        return np.tile(np.arange(neighbours), (len(queries), 1)), None


@fet.linker
class Slow(Nearest):
    """Holds the interpreter's lock in short pieces for a while, as a long loop in Python does."""

    def link(self, queries: Any, records: Any, neighbours: int, seed: int) -> Found:
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            sum(range(1000))
        return super().link(queries, records, neighbours, seed)


@fet.linker
class Random(Nearest):
    """Breaks a law: the links do not repeat."""

    def link(self, queries: Any, records: Any, neighbours: int, seed: int) -> Found:
        indices, similarities = super().link(queries, records, neighbours, seed)
        return indices, similarities - np.random.default_rng().random()


@fet.linker
class Together(Nearest):
    """Breaks a law: the links of a query depend on the others."""

    def link(self, queries: Any, records: Any, neighbours: int, seed: int) -> Found:
        return super().link(queries - queries.mean(axis=0), records, neighbours, seed)


@fet.linker
class Nested(Nearest):
    """Runs the program inside the program."""

    def link(self, queries: Any, records: Any, neighbours: int, seed: int) -> Found:
        fet.testing.check_linker(Nearest)
        return super().link(queries, records, neighbours, seed)


@fet.linker
class Faulty(Nearest):
    """Returns the links with one fault."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault

    def link(self, queries: Any, records: Any, neighbours: int, seed: int) -> Found:
        indices, similarities = super().link(queries, records, neighbours, seed)
        faults: dict[str, Any] = {
            "one": lambda: indices,
            "none": lambda: (indices, None),
            "shape": lambda: (indices[:-1], similarities[:-1]),
            "columns": lambda: (indices, similarities[:, :1]),
            "type": lambda: (indices.astype(float), similarities),
            "range": lambda: (indices + len(records), similarities),
            "negative": lambda: (indices - len(records), similarities),
            "twice": lambda: (indices * 0, similarities),
            "order": lambda: (indices, -similarities),
            "nan": lambda: (indices, similarities * np.nan),
            "exception": lambda: {}["the key of a person"],
            "input error": lambda: fet.Table("the key of a person").file(Path(), "x"),
        }
        found: Found = faults[self.fault]()
        return found
