"""Sizes of the data sets that can be learned: which networks they fit and how many rows they have. Imports nothing, so
that checks before a launch are fast; data.py makes the rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """Inputs and labels that a network must have for a data set, and the number of rows."""

    summary: str
    # values of one sample
    inputs: int
    # inputs are tokens below this; None: float32
    vocabulary: int | None = None
    classes: int
    # of the labels of one sample; (): one label
    label_shape: tuple[int, ...] = ()
    # rows
    training: int
    test: int


# scikit-learn's 1797 images, four fifths of them for training
DIGITS = DataSet(summary="8x8 images, 10 classes", inputs=64, classes=10, training=1438, test=359)

# Tokens of a sequence to be written backwards, and their number of values; one value more starts the answer.
REVERSED_LENGTH, REVERSED_TOKENS = 5, 8
REVERSAL = DataSet(
    summary="sequences and the same backwards",
    inputs=2 * REVERSED_LENGTH,
    vocabulary=REVERSED_TOKENS + 1,
    classes=REVERSED_TOKENS,
    label_shape=(REVERSED_LENGTH,),
    training=7680,
    test=512,
)

# Words of the language, topics of sentences, and words of a sentence.
WORDS, TOPIC_COUNT, SENTENCE_WORDS = 256, 8, 12
# Share of a sentence's words that are drawn from its topic's own words.
OWN_SHARE = 0.5
TOPICS = DataSet(
    summary="sentences of 12 words, 8 topics",
    inputs=SENTENCE_WORDS,
    vocabulary=WORDS,
    classes=TOPIC_COUNT,
    training=7680,
    test=512,
)

DATA_SETS = {"digits": DIGITS, "reversal": REVERSAL, "topics": TOPICS}
