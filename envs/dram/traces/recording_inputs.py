"""Inputs of the recorded programs, each written into a folder from a seed.

They are synthetic, so no third party holds rights in them. Their generators have streams that are
guaranteed not to change: Python's ``random.Random`` and NumPy's ``RandomState``.
"""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["graph", "matrices", "photograph", "records", "shop", "signal", "text"]


def text(path: Path, words: int, seed: int) -> None:
    """Running text: words of a vocabulary of 30,000 with Zipf's frequencies, lines of 12 words."""
    draw = random.Random(seed)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    vocabulary = [
        "".join(draw.choices(letters, range(26, 0, -1), k=draw.randint(2, 10)))
        for _ in range(30_000)
    ]
    weights = [1_000_000 // (rank + 1) for rank in range(len(vocabulary))]
    chosen = draw.choices(vocabulary, weights, k=words)
    lines = (" ".join(chosen[i : i + 12]) for i in range(0, words, 12))
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def shop(folder: Path) -> None:
    """A shop: 150,000 customers, 20,000 products, 300,000 purchases."""
    draw = random.Random(1)
    with sqlite3.connect(folder / "shop.db") as shop:
        shop.executescript(
            "CREATE TABLE customer(id INTEGER PRIMARY KEY, region INTEGER, name TEXT);"
            "CREATE TABLE product(id INTEGER PRIMARY KEY, category INTEGER, price INTEGER);"
            "CREATE TABLE purchase(id INTEGER PRIMARY KEY, customer INTEGER, product INTEGER,"
            " amount INTEGER, note TEXT);"
        )
        shop.executemany(
            "INSERT INTO customer VALUES (?, ?, ?)",
            ((i, draw.randrange(50), f"customer {draw.getrandbits(64):x}") for i in range(150_000)),
        )
        shop.executemany(
            "INSERT INTO product VALUES (?, ?, ?)",
            ((i, draw.randrange(40), draw.randint(1, 999)) for i in range(20_000)),
        )
        shop.executemany(
            "INSERT INTO purchase VALUES (?, ?, ?, ?, ?)",
            (
                (
                    i,
                    draw.randrange(150_000),
                    draw.randrange(20_000),
                    draw.randint(1, 20),
                    f"{draw.getrandbits(128):x}",
                )
                for i in range(300_000)
            ),
        )
    shop.close()


def records(folder: Path) -> None:
    """80,000 records."""
    draw = random.Random(2)
    records = [
        {
            "name": f"{draw.getrandbits(48):x}",
            "city": draw.randrange(500),
            "score": draw.randrange(1_000_000),
            "tags": [draw.randrange(100) for _ in range(4)],
        }
        for _ in range(80_000)
    ]
    (folder / "records.json").write_text(json.dumps(records), encoding="ascii")


def matrices(folder: Path, size: int, seed: int) -> None:
    """Two square matrices of 64-bit numbers, ``a.npy`` and ``b.npy``, uniform from 0 to 1."""
    draw = np.random.RandomState(seed)
    for name in ("a", "b"):
        np.save(folder / f"{name}.npy", draw.random_sample((size, size)))


def graph(folder: Path, vertices: int, degree: int, seed: int) -> None:
    """A directed graph in compressed rows: ``start.npy``, ``target.npy``, ``weight.npy``.

    Arcs start anywhere and end more often at some vertices than at others: the share of the most
    popular part p of the vertices is the cube root of p, in a random order.
    """
    draw = np.random.RandomState(seed)
    arcs = vertices * degree
    source = draw.randint(0, vertices, arcs)
    popularity = (vertices * draw.random_sample(arcs) ** 3).astype(np.int64)
    target = draw.permutation(vertices)[popularity]
    weight = draw.randint(1, 1000, arcs).astype(np.float64)
    order = np.argsort(source, kind="stable")
    ends = np.cumsum(np.bincount(source, minlength=vertices))
    np.save(folder / "start.npy", np.concatenate([[0], ends]).astype(np.int32))
    np.save(folder / "target.npy", target[order].astype(np.int32))
    np.save(folder / "weight.npy", weight[order])


def signal(folder: Path, size: int, seed: int) -> None:
    """A square of complex numbers, ``signal.npy``, both parts uniform from 0 to 1."""
    draw = np.random.RandomState(seed)
    real, imaginary = draw.random_sample((2, size, size))
    np.save(folder / "signal.npy", real + 1j * imaginary)


def photograph(folder: Path, width: int, height: int, seed: int) -> None:
    """A colour picture with detail at every scale and grain, as a progressive ``photo.jpg``."""
    draw = np.random.RandomState(seed)
    picture = np.full((height, width, 3), 128.0)
    for octave in range(2, 11):
        cells = 1 << octave
        noise = draw.random_sample((cells + 2, cells + 2, 3)) - 0.5
        picture += _stretched(noise, width, height, cells) * (700 / cells)
    picture += draw.random_sample((height, width, 1)) * 21 - 10.5
    pixels = np.clip(picture, 0, 255).astype(np.uint8)
    header = f"P6 {width} {height} 255\n".encode("ascii")
    (folder / "photo.ppm").write_bytes(header + pixels.tobytes())
    subprocess.run(
        ["cjpeg", "-quality", "85", "-progressive", "-outfile", "photo.jpg", "photo.ppm"],
        cwd=folder,
        check=True,
        timeout=60,
    )


def _stretched(
    noise: NDArray[np.float64], width: int, height: int, cells: int
) -> NDArray[np.float64]:
    """The first ``cells`` cells of a grid of noise, interpolated, shape (height, width, 3)."""
    y, x = np.linspace(0, cells, height), np.linspace(0, cells, width)
    row, column = y.astype(np.int64), x.astype(np.int64)
    down, right = (y - row)[:, None, None], (x - column)[None, :, None]
    rows = noise[row] * (1 - down) + noise[row + 1] * down
    return np.asarray(rows[:, column] * (1 - right) + rows[:, column + 1] * right)
