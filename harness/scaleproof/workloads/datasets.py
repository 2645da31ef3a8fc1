"""The data sets that can be learned, as numbers: what networks they fit and how many rows they have. Imports nothing,
for checks before a launch."""

from __future__ import annotations

from typing import NamedTuple

DIGITS_PIXELS, DIGITS_CLASSES = 64, 10
DIGITS_TRAINING, DIGITS_TEST = 1438, 359
"""Four fifths of scikit-learn's 1797 images are for training."""
REVERSED_LENGTH, REVERSED_TOKENS = 5, 8
"""Tokens of a sequence to be written backwards, and their number of values; one value more starts the answer."""
WORDS, TOPICS, SENTENCE, OWN_SHARE = 256, 8, 12, 0.5
"""Words of the language, topics of sentences, words of a sentence, and the share of its words that are drawn from its
topic's own ones."""


class DataSet(NamedTuple):
    """What a network must take and give, and how many rows there are."""

    inputs: int
    """Values of one sample."""
    vocabulary: int | None
    classes: int
    label_shape: tuple[int, ...]
    training: int
    test: int
    holds: str
    fits: str


DATA_SETS = {
    "digits": DataSet(
        DIGITS_PIXELS,
        None,
        DIGITS_CLASSES,
        (),
        DIGITS_TRAINING,
        DIGITS_TEST,
        "8x8 images, 10 classes",
        "vgg_digits or dnn_digits",
    ),
    "reversal": DataSet(
        2 * REVERSED_LENGTH,
        REVERSED_TOKENS + 1,
        REVERSED_TOKENS,
        (REVERSED_LENGTH,),
        7680,
        512,
        "sequences and the same backwards",
        "seq2seq",
    ),
    "topics": DataSet(SENTENCE, WORDS, TOPICS, (), 7680, 512, "sentences of 12 words, 8 topics", "sentence_embedding"),
}
