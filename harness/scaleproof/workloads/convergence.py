"""Three small networks that learn, in place of the three with which xue2019 shows convergence (Seq2Seq translation,
CIFAR-10, sentence embedding): they are ours, on data that are generated or come with scikit-learn, and their sizes are
not the published ones."""

from __future__ import annotations

from scaleproof.workloads.datasets import DIGITS_CLASSES, REVERSED_LENGTH, REVERSED_TOKENS, SENTENCE, TOPICS, WORDS
from scaleproof.workloads.layers import Conv, Embedding, Linear, Mean, Pool, Positions, Recurrent
from scaleproof.workloads.networks import Network, build, no_images

_SEQ2SEQ = (
    Embedding("embedding", REVERSED_TOKENS + 1, 32),
    Positions("source", 0, REVERSED_LENGTH),
    Recurrent("encoder", 64, "gru"),
    Positions("answer", REVERSED_LENGTH, 2 * REVERSED_LENGTH, inputs=("embedding",)),
    Recurrent("decoder", 64, "gru", every=True, inputs=("answer", "encoder")),
    Linear("softmax", REVERSED_TOKENS, classifier=True, each=True),
)
_CNN_DIGITS = (
    Conv("conv1", 32, 5, pad=2),
    Pool("pool1", 3, stride=2, pad="same"),
    Conv("conv2", 32, 5, pad=2),
    Pool("pool2", 3, stride=2, pad="same"),
    Linear("fc3", 96),
    Linear("fc4", 48),
    Linear("fc5", DIGITS_CLASSES, classifier=True),
)
_SENTENCE_EMBEDDING = (
    Embedding("embedding", WORDS, 32),
    Mean("mean"),
    Linear("projection", 64),
    Linear("softmax", TOPICS, classifier=True),
)


def seq2seq(image_side: int | None = None, width: float = 1.0) -> Network:
    """GRU encoder and decoder without attention, 64 wide; the decoder sees the right answer up to the token before
    (teacher forcing)."""
    shape = no_images("seq2seq", (2 * REVERSED_LENGTH,), image_side)
    return build("seq2seq", shape, _SEQ2SEQ, width, "tanh", vocabulary=REVERSED_TOKENS + 1)


def cnn_digits(image_side: int | None = None, width: float = 1.0) -> Network:
    """Two 5x5 convolutions with overlapping pooling of the maximum, three fully connected layers, ReLU: the shape of
    the CIFAR-10 networks of that time, for 8x8 digits."""
    side = image_side or 8
    return build("cnn_digits", (1, side, side), _CNN_DIGITS, width)


def sentence_embedding(image_side: int | None = None, width: float = 1.0) -> Network:
    """Mean of word vectors, projected to 64 features, from which the topic is told."""
    shape = no_images("sentence_embedding", (SENTENCE,), image_side)
    return build("sentence_embedding", shape, _SENTENCE_EMBEDDING, width, "tanh", vocabulary=WORDS)
