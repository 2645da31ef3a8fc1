"""Handwritten digits: 1797 images of 8x8 pixels that come with scikit-learn."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
from pathlib import Path

import numpy as np

from scaleproof.spec.errors import SpecError
from scaleproof.workloads.data import Batch, Table
from scaleproof.workloads.dataset import Dataset, Rows
from scaleproof.workloads.inputs import tables
from scaleproof.workloads.inputs.findings import BadInput, Finding, Findings
from scaleproof.workloads.networks import Network

# scikit-learn's 1797 images, four fifths of them for training
ROWS = Rows(inputs=64, classes=10, training=1438, test=359)
FILE = "digits.csv.gz"
SHA256 = "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22"
"""Digest of the file in scikit-learn 1.9."""
PER_CLASS = (178, 182, 177, 183, 181, 182, 181, 179, 174, 180)
"""Published counts of the classes 0 to 9 of the test set: UCI repository, page of data set 80."""
PROVENANCE = (
    "Optical Recognition of Handwritten Digits, test set (UCI data set 80), as scikit-learn 1.9 holds it; E. "
    "Alpaydin and C. Kaynak, Bogazici University; "
    "donated July 1998, date of writing not stated; licence not stated in the file (scikit-learn's package: "
    "BSD-3-Clause); "
    "13 people wrote on preprinted forms, NIST's programs reduced 32x32 bitmaps to 8x8 counts"
)


class Digits(Table):
    """1797 images of 8x8 pixels, 10 classes."""

    def __init__(self, network: Network, minibatch: int, seed: int, rank: int, world_size: int) -> None:
        images, labels = load_digits()
        rows = Batch(images.reshape(-1, *network.input_shape), labels)
        super().__init__(rows, ROWS.test, minibatch, seed, rank, world_size)

    def findings(self) -> Findings:
        """See Source."""
        findings, labels = Findings("digits"), self.rows.labels
        if not tables.in_range(findings, "labels", labels, len(PER_CLASS)):
            return findings
        _file(findings, self.rows.inputs.reshape(len(labels), -1), labels)
        tables.split(findings, self, ROWS.training, ROWS.test)
        findings.absent("D7", "leakage by time", "the rows carry no time")
        findings.absent(
            "D8",
            "largest writer",
            "13 people wrote the digits, the file does not say who wrote which: writers are in training and test set "
            "alike",
        )
        tables.order(findings, "order of the file", labels)
        tables.order(findings, "order of training", self.epoch_labels())
        tables.null_of_centroids(findings, self.train, self.test, self.seed)
        counts = np.bincount(labels, minlength=len(PER_CLASS))
        apart = float(np.abs(np.cumsum(counts - np.array(PER_CLASS))).max() / len(labels))
        findings.at_most(
            "D12",
            "labels against the published counts",
            apart,
            0.0,
            "real data, nothing is generated; KS distance of the labels",
        )
        return findings


def _file(findings: Findings, images: np.ndarray, labels: np.ndarray) -> None:
    """Checks that need only the file."""
    findings.judge("D2", "rows", len(labels), f"{sum(PER_CLASS)}", len(labels) == sum(PER_CLASS), otherwise="fail")
    tables.size(findings, images.nbytes)
    findings.at_most(
        "D3",
        "constant inputs",
        float((images.min(axis=0) == images.max(axis=0)).mean()),
        tables.UNUSED,
        "share of pixels that never change",
    )
    tables.no_graph(findings)
    findings.absent(
        "D6",
        "density",
        "dense images; the value is the share of pixels that are not blank",
        float((images > -1).mean()),
    )
    findings.at_most(
        "D7",
        "repeated rows",
        1 - len(np.unique(tables.as_rows(images))) / len(images),
        tables.ALIKE,
        "share of images that stand there more than once",
    )
    tables.largest_class(findings, labels)
    findings.absent("D9", "heavy tail", "10 classes of equal size are no tail")


def check_file() -> Finding:
    """D1; fails when the file is not the pinned one."""
    findings, sha256 = Findings("digits"), hashlib.sha256(read_digits()).hexdigest()
    findings.judge("D1", "sha256", sha256, SHA256, sha256 == SHA256, f"{FILE}: {PROVENANCE}", otherwise="fail")
    return findings.findings[0]


def read_digits() -> bytes:
    """The file in scikit-learn, read without importing scikit-learn, which takes a second."""
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise SpecError("data 'digits' needs scikit-learn; type `make env`")
    return (Path(spec.origin).parent / "datasets" / "data" / FILE).read_bytes()


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Images float32 (1797, 64), scaled to [-1, 1], and labels. Raises BadInput, before parsing, when the file is not
    the pinned one."""
    content = read_digits()
    if (sha256 := hashlib.sha256(content).hexdigest()) != SHA256:
        raise BadInput(
            f"D1 sha256 of digits: {sha256}, must be {SHA256}; {FILE} is not the one of "
            "scikit-learn 1.9: install that version again"
        )
    with gzip.open(io.BytesIO(content)) as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.float32)
    return table[:, :-1] / 8 - 1, table[:, -1].astype(np.int64)


PLUGIN = Dataset(
    name="digits",
    summary="8x8 images, 10 classes",
    implementation=Digits,
    requires=("sklearn",),
    rows=ROWS,
    target=0.95,
    check_file=check_file,
)
