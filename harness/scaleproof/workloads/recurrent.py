"""Recurrent networks of xue2019: one LSTM or GRU layer of 1024 on inputs of 1024, and a softmax of 1000 on its last
state."""

from __future__ import annotations

from scaleproof.workloads.layers import Linear
from scaleproof.workloads.sequence_layers import Recurrent
from scaleproof.workloads.workload import ReferenceCounts, Workload

# Length of a sequence: our own, the published one is not known. Parameters do not depend on it, FLOP do.
POSITIONS = 16

lstm = Workload(
    name="lstm",
    summary="LSTM 1024 to 1024 and softmax 1000, 9.4 M parameters",
    input_shape=(POSITIONS, 1024),
    layers=(Recurrent("cell", 1024, "lstm"), Linear("softmax", 1000, classifier=True)),
    activation="tanh",
    reference=ReferenceCounts(
        weights=9_412_608,
        biases=5_096,
        forward_mac=135_241_728,
        source="LSTM 1024 -> 1024 plus softmax 1000, one bias per gate; 16 positions are our own",
        provenance="memory_high (shape; its size is the published one to the last digit), derived (counts)",
        tensors=14,
        mib=35.93,
    ),
)
gru = Workload(
    name="gru",
    summary="GRU 1024 to 1024 and softmax 1000, 7.3 M parameters",
    input_shape=(POSITIONS, 1024),
    layers=(Recurrent("cell", 1024, "gru"), Linear("softmax", 1000, classifier=True)),
    activation="tanh",
    reference=ReferenceCounts(
        weights=7_315_456,
        biases=4_072,
        forward_mac=101_687_296,
        source="GRU 1024 -> 1024 plus softmax 1000, one bias per gate; 16 positions are our own",
        provenance="memory_high (shape; its size is the published one to the last digit), derived (counts)",
        tensors=11,
        mib=27.92,
    ),
)

PLUGINS = (lstm, gru)
