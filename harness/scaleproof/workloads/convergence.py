"""Three small networks that stand for the three with which xue2019 shows convergence (Seq2Seq translation, CIFAR-10,
sentence embedding). They are our own, with other sizes, on data that are generated or come with scikit-learn."""

from __future__ import annotations

from scaleproof.workloads.datasets import digits, reversal, topics
from scaleproof.workloads.layers import Conv, Linear, Mean, Pool
from scaleproof.workloads.sequence_layers import Embedding, Positions, Recurrent
from scaleproof.workloads.workload import ReferenceCounts, Workload

_SEQ2SEQ = (
    Embedding("embedding", reversal.TOKENS + 1, 32),
    Positions("source", 0, reversal.LENGTH),
    Recurrent("encoder", 64, "gru"),
    Positions("answer", reversal.LENGTH, 2 * reversal.LENGTH, inputs=("embedding",)),
    Recurrent("decoder", 64, "gru", every=True, inputs=("answer", "encoder")),
    Linear("softmax", reversal.TOKENS, classifier=True, each=True),
)
_CNN_DIGITS = (
    Conv("conv1", 32, 5, pad=2),
    Pool("pool1", 3, stride=2, pad="same"),
    Conv("conv2", 32, 5, pad=2),
    Pool("pool2", 3, stride=2, pad="same"),
    Linear("fc3", 96),
    Linear("fc4", 48),
    Linear("fc5", digits.ROWS.classes, classifier=True),
)
_SENTENCE_EMBEDDING = (
    Embedding("embedding", topics.WORDS, 32),
    Mean("mean"),
    Linear("projection", 64),
    Linear("softmax", topics.TOPIC_COUNT, classifier=True),
)

# The decoder reads the right answer up to the previous token (teacher forcing).
seq2seq = Workload(
    name="seq2seq",
    summary="small GRU encoder and decoder that learns to reverse sequences",
    input_shape=(2 * reversal.LENGTH,),
    layers=_SEQ2SEQ,
    activation="tanh",
    vocabulary=reversal.TOKENS + 1,
    reference=ReferenceCounts(
        weights=37_664,
        biases=392,
        forward_mac=186_880,
        source="this project: GRU encoder and decoder of 64 on embeddings of 32, 5 tokens to 5",
        provenance="own (shapes), derived (counts)",
    ),
)
# The shape of the CIFAR-10 networks of that time, for 8x8 digits.
cnn_digits = Workload(
    name="cnn_digits",
    summary="small ReLU net with overlapping pooling for 8x8 digits",
    input_shape=(1, 8, 8),
    smallest_side=3,
    layers=_CNN_DIGITS,
    reference=ReferenceCounts(
        weights=43_776,
        biases=218,
        forward_mac=478_176,
        source="this project: convolutions of 5x5, overlapping pooling, for 8x8 digits",
        provenance="own (shapes), derived (counts)",
    ),
)
sentence_embedding = Workload(
    name="sentence_embedding",
    summary="small mean of word vectors that learns the topic of sentences",
    input_shape=(topics.SENTENCE_WORDS,),
    layers=_SENTENCE_EMBEDDING,
    activation="tanh",
    vocabulary=topics.WORDS,
    reference=ReferenceCounts(
        weights=10_752,
        biases=72,
        forward_mac=2_560,
        source="this project: mean of 12 word vectors of 32, 64 features, 8 topics",
        provenance="own (shapes), derived (counts)",
    ),
)

PLUGINS = (seq2seq, cnn_digits, sentence_embedding)
