"""Data with two classes: real ones that scikit-learn brings, drawn ones, and files of the user's own in LIBSVM's text
form. Each launch draws, or divides, by its seed."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from suite_programs.blocks import LARGEST, Rows, compressed, rows_of, too_large

from scaleproof.spec import registry
from scaleproof.spec.errors import SpecError
from scaleproof.workloads.datasets.digits import load_digits

MOST = 1 << 20
"""Samples: the location of an extreme has 20 bits (messages.py)."""
TEST_SHARE = 0.2
"""Of real data; of drawn data as many again are drawn."""
CANCER, CANCER_SHA256 = "breast_cancer.csv", "fed3eb72d0575ef6192293f5093c6e801b1476b577d0386bf4455504522172ed"
"""The file in scikit-learn 1.9, and its digest."""
Pair = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True)
class Problem:
    """Labels are -1 and +1, float64 (rows). `width`: of the kernel exp(-width |x - z|^2); `limit`: C."""

    train: Rows
    labels: np.ndarray
    test: Rows
    test_labels: np.ndarray
    width: float
    limit: float


def gaussians(count: int, shift: float, flipped: float, random: np.random.Generator) -> Pair:
    """y = +-1 with probability 0.5 each, x of 10 normal values, x0 += shift y, x1 += shift / 2 y |x2|. A share of the
    labels is turned round afterwards."""
    labels = np.where(random.random(count) < 0.5, -1.0, 1.0)
    dense = random.standard_normal((count, 10))
    dense[:, 0] += shift * labels
    dense[:, 1] += shift / 2 * labels * np.abs(dense[:, 2])
    labels[random.random(count) < flipped] *= -1
    return dense, labels


def moons(count: int, random: np.random.Generator) -> Pair:
    """Two half circles of radius 1 that reach into each other, with normal noise of 0.25 on both features."""
    labels = np.where(random.random(count) < 0.5, -1.0, 1.0)
    angle = math.pi * random.random(count)
    upper, lower = (np.cos(angle), np.sin(angle)), (1 - np.cos(angle), 0.5 - np.sin(angle))
    dense = np.where(labels[:, None] > 0, np.transpose(lower), np.transpose(upper))
    return dense + 0.25 * random.standard_normal((count, 2)), labels


def digits(positive: tuple[int, ...], negative: tuple[int, ...]) -> Pair:
    """Handwritten digits of 8 x 8 pixels, 0 to 1."""
    images, labels = load_digits()
    used = np.isin(labels, positive + negative)
    return (images[used].astype(np.float64) + 1) / 2, np.where(np.isin(labels[used], positive), 1.0, -1.0)


def cancer_file() -> bytes:
    """Read without importing scikit-learn, which would take a second on every rank. SpecError where it is not the
    pinned one."""
    found = importlib.util.find_spec("sklearn")
    if found is None or found.origin is None:
        raise SpecError("data 'breast_cancer' needs scikit-learn; type `make env`")
    path = Path(found.origin).parent / "datasets" / "data" / CANCER
    content = path.read_bytes()
    if (sha256 := hashlib.sha256(content).hexdigest()) != CANCER_SHA256:
        raise SpecError(f"{path}: sha256 is {sha256}, that of scikit-learn 1.9 is {CANCER_SHA256}")
    return content


def breast_cancer() -> Pair:
    """569 samples of 30 features, each with mean 0 and deviation 1."""
    table = np.loadtxt(io.BytesIO(cancer_file()), delimiter=",", skiprows=1)
    dense = table[:, :-1]
    return (dense - dense.mean(axis=0)) / dense.std(axis=0), np.where(table[:, -1] > 0, 1.0, -1.0)


@dataclass(frozen=True, slots=True)
class Source:
    """`draw`: of so many samples; `load`: all there are. `width`, `limit`: of the kernel and of alpha."""

    width: float
    limit: float
    draw: Callable[[int, np.random.Generator], Pair] | None = None
    load: Callable[[], Pair] | None = None


SOURCES = {
    "gaussians": Source(0.1, 10.0, draw=lambda count, random: gaussians(count, 1.6, 0.0, random)),
    "easy": Source(0.1, 1.0, draw=lambda count, random: gaussians(count, 4.0, 0.0, random)),
    "noisy": Source(0.1, 1.0, draw=lambda count, random: gaussians(count, 1.6, 0.3, random)),
    "moons": Source(1.0, 10.0, draw=moons),
    "digits_3_8": Source(0.05, 10.0, load=lambda: digits((3,), (8,))),
    "digits_odd": Source(0.05, 10.0, load=lambda: digits((1, 3, 5, 7, 9), (0, 2, 4, 6, 8))),
    "breast_cancer": Source(1 / 30, 10.0, load=breast_cancer),
}
OF_FILE = Source(0.1, 10.0)
FILE = "file:"
"""`file:PATH` names a file in LIBSVM's form."""


def look_up(name: str) -> Source:
    """What is known of data by name. What is not drawn is read; SpecError or BadInput say in one line what is wrong."""
    if name.startswith(FILE):
        read_libsvm(Path(name.removeprefix(FILE)))
        return OF_FILE
    source = _named(name)
    if source.load is not None:
        source.load()
    return source


def _named(name: str) -> Source:
    source = SOURCES.get(name)
    if source is None:
        raise SpecError(f"options.data: unknown data {name!r}; {registry.nearest(name, list(SOURCES))}")
    return source


def problem(name: str, count: int, seed: int) -> Problem:
    """Data by name; SpecError says in one line what is wrong with it. The order of samples is drawn."""
    random = np.random.default_rng([seed, 2014])
    if name.startswith(FILE):
        return _divided(name, read_libsvm(Path(name.removeprefix(FILE))), OF_FILE, random)
    source = _named(name)
    if source.draw is not None:
        (dense, labels), (test, test_labels) = source.draw(count, random), source.draw(count, random)
        check(name, dense, labels)
        return Problem(compressed(dense), labels, compressed(test), test_labels, source.width, source.limit)
    assert source.load is not None
    dense, labels = source.load()
    check(name, dense, labels)
    return _divided(name, (compressed(dense), labels), source, random)


def _divided(name: str, data: tuple[Rows, np.ndarray], source: Source, random: np.random.Generator) -> Problem:
    rows, labels = data
    order = random.permutation(len(rows))
    tests = round(TEST_SHARE * len(order))
    test, train = order[:tests], order[tests:]
    _check_labels(name, labels[train])
    return Problem(rows.chosen(train), labels[train], rows.chosen(test), labels[test], source.width, source.limit)


def check(name: str, dense: np.ndarray, labels: np.ndarray) -> None:
    """SpecError in one line for labels without samples, and for the first value that is no number."""
    if len(dense) != len(labels):
        raise SpecError(f"data {name}: {len(labels)} labels for {len(dense)} samples")
    wrong = np.argwhere(~np.isfinite(dense))
    if len(wrong):
        row, column = (int(each) for each in wrong[0])
        raise SpecError(f"data {name}: sample {row}, feature {column}: {dense[row, column]} is not a finite number")
    _check_labels(name, labels)


def _check_labels(name: str, labels: np.ndarray) -> None:
    for label in (-1.0, 1.0):
        if not np.any(labels == label):
            raise SpecError(f"data {name}: no sample has label {label:+g}; a machine needs both classes")
    if len(labels) >= MOST:
        raise SpecError(f"data {name}: {len(labels)} samples; at most {MOST - 1}")


def read_libsvm(path: Path) -> tuple[Rows, np.ndarray]:
    """A text file with a line `label column:value ...` for each sample, columns from 1 in rising order. Two labels; the
    larger becomes +1. SpecError names file and line of the first mistake."""
    if not path.is_file():
        raise SpecError(f"{path}: no such file; give the path of a file in LIBSVM's form")
    labels, counts, columns, values = list[float](), [0], list[int](), list[float]()
    with path.open() as lines:
        for number, line in enumerate(lines, 1):
            if words := line.split("#")[0].split():
                labels.append(_number(words[0], f"{path}:{number}: label"))
                _read_row(words[1:], f"{path}:{number}", columns, values)
                counts.append(len(columns))
    known = sorted(set(labels))
    if len(known) != 2:
        raise SpecError(f"{path}: {len(known)} different labels in {len(labels)} samples; a machine needs two")
    features = max(columns) + 1
    rows = rows_of(np.array(counts), np.array(columns), np.array(values), features)
    return rows, np.where(np.array(labels) == known[1], 1.0, -1.0)


def _read_row(words: list[str], where: str, columns: list[int], values: list[float]) -> None:
    if not words:
        raise SpecError(f"{where}: a label without a sample; expected 'label column:value ...'")
    before, square = 0, 0.0
    for word in words:
        column, colon, value = word.partition(":")
        if not colon or not column.isdigit() or int(column) <= before:
            raise SpecError(f"{where}: {word!r} is not column:value with a column above {before}")
        before = int(column)
        columns.append(before - 1)
        values.append(_number(value, f"{where}: column {before}"))
        square += values[-1] * values[-1]
    if not square < LARGEST:
        raise SpecError(f"{where}: {too_large(square)}")


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise SpecError(f"{where}: {text!r} is not a finite number")
    return value
