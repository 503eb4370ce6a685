"""Tables for the tests: places with readings, and stations near them whose columns decide the label."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fet

KEYS = ["lon", "lat"]


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt a test, also where a shell started the tests in the background and ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_after(begun: Callable[[], bool]) -> threading.Thread:
    """Press Ctrl-C once something has begun, at the latest after 30 seconds."""

    def interrupt() -> None:
        for _ in range(600):
            if begun():
                break
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    waiting = threading.Thread(target=interrupt)
    waiting.start()
    return waiting


def places(rows: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make the primary's table with both labels, and the table of another party."""
    random = np.random.default_rng(seed)
    stations = pd.DataFrame(
        {
            "lon": random.uniform(0, 10, 200).round(4),
            "lat": random.uniform(0, 10, 200).round(4),
            "rain": random.normal(size=200).round(4),
            "kind": random.choice(["coast", "hill", "town"], 200),
            "opened": pd.Timestamp("2001-01-01") + pd.to_timedelta(random.integers(0, 9000, 200), unit="D"),
        }
    )
    near = random.integers(0, 200, rows)
    own = random.normal(size=rows).round(4)
    amount = own + 2 * stations["rain"].to_numpy()[near]
    table = pd.DataFrame(
        {
            "lon": (stations["lon"].to_numpy()[near] + random.normal(0, 0.01, rows)).round(4),
            "lat": (stations["lat"].to_numpy()[near] + random.normal(0, 0.01, rows)).round(4),
            "own": own,
            "crop": random.choice(["rye", "oats"], rows),
            "amount": amount.round(4),
            "wet": np.where(amount > 0, "yes", "no"),
        }
    )
    return table, stations


@pytest.fixture(scope="session")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the two tables."""
    return places(400, 1)


@pytest.fixture
def classifier(tables: tuple[pd.DataFrame, pd.DataFrame]) -> Callable[..., Any]:
    """Return a function that makes a fast classifier."""
    stations = fet.Table(tables[1], keys=KEYS, name="stations")

    def make(**parameters: Any) -> Any:
        given = {"epochs": 2, "settings": {"train.early_stopping": 0}, **parameters}
        return fet.FeTPoolClassifier(KEYS, [stations], **given)

    return make


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """Write an experiment on embedded data."""
    file = tmp_path / "digits.toml"
    file.write_text(
        """
name = "digits"
data = { kind = "split", parties = 2, key_noise = 0.05, partition_seed = 0, source = { kind = "digits" } }
linker = { kind = "nearest", neighbours = 3 }
method = { kind = "fet-pool", hidden = [16] }
encoder = { kind = "mlp" }
train = { epochs = 2 }
"""
    )
    return file
