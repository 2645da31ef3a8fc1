"""The harness's metrics of what a training learned, and of strategies whose ranks go at their own pace."""

from __future__ import annotations

import math

from scaleproof.claims import metrics_equal, metrics_quality, metrics_replicas, metrics_train
from scaleproof.claims.learning_curve import divergence
from scaleproof.claims.made_up import reporting
from scaleproof.claims.metric import Metric

_LEARNED = (
    Metric(
        "final_loss",
        "nat",
        "lower",
        launch=metrics_train.final_loss,
        made_up=metrics_train.made_up_loss,
        instead=divergence,
    ),
    Metric(
        "test_accuracy",
        "fraction",
        "higher",
        launch=metrics_train.test_accuracy,
        made_up=metrics_train.made_up_accuracy,
        instead=divergence,
    ),
    Metric(
        "test_loss",
        "nat",
        "lower",
        launch=metrics_replicas.test_loss,
        made_up=reporting("test_loss"),
        instead=divergence,
    ),
    Metric("diverged", "bool", "lower", launch=metrics_replicas.diverged, made_up=metrics_replicas.made_up_diverged),
    Metric(
        "diverged_step",
        "steps",
        None,
        launch=metrics_replicas.diverged_step,
        made_up=metrics_replicas.made_up_diverged_step,
    ),
    Metric(
        "time_to_quality",
        "s",
        "lower",
        launch=metrics_quality.time_to_quality,
        made_up=metrics_quality.made_up,
        instead=metrics_quality.not_reached,
    ),
    Metric(
        "samples_to_quality",
        "samples",
        "lower",
        launch=metrics_quality.samples_to_quality,
        made_up=metrics_quality.made_up_samples,
        instead=metrics_quality.not_reached,
    ),
)
_AT_EQUAL = (
    Metric(
        "loss_at_samples",
        "x",
        "lower",
        pair=metrics_equal.loss_at_samples,
        made_up=metrics_equal.making("test_loss"),
        same=metrics_equal.SAME_TASK,
        instead=divergence,
    ),
    Metric(
        "loss_at_seconds",
        "x",
        "lower",
        pair=metrics_equal.loss_at_seconds,
        made_up=metrics_equal.making("test_loss"),
        same=metrics_equal.SAME_TASK,
        instead=divergence,
        clocked=True,
        noise_of=("throughput",),
    ),
    Metric(
        "accuracy_at_samples",
        "fraction",
        "higher",
        pair=metrics_equal.accuracy_at_samples,
        made_up=metrics_equal.making("test_accuracy"),
        same=metrics_equal.SAME_TASK,
        range=(-1.0, 1.0),
    ),
    Metric(
        "accuracy_at_seconds",
        "fraction",
        "higher",
        pair=metrics_equal.accuracy_at_seconds,
        made_up=metrics_equal.making("test_accuracy"),
        same=metrics_equal.SAME_TASK,
        range=(-1.0, 1.0),
        clocked=True,
        noise_of=("throughput",),
        noise="added",
    ),
)
_OF_REPLICAS = (
    Metric("staleness", "updates", "lower", launch=metrics_replicas.staleness, made_up=reporting("staleness")),
    Metric("staleness_p95", "updates", "lower", launch=metrics_replicas.staleness_p95, made_up=reporting("staleness")),
    Metric(
        "consensus_distance",
        "fraction",
        "lower",
        launch=metrics_replicas.consensus_distance,
        made_up=reporting("consensus_distance"),
        range=(0.0, math.inf),
        instead=divergence,
    ),
    Metric(
        "control_messages",
        "messages",
        "lower",
        launch=metrics_replicas.control_messages,
        made_up=metrics_replicas.made_up_per_step("control"),
        own_count=True,
    ),
    Metric(
        "control_bytes_per_step",
        "B",
        "lower",
        launch=metrics_replicas.control_bytes_per_step,
        made_up=metrics_replicas.made_up_bytes_of_control,
        own_count=True,
    ),
    Metric(
        "model_messages",
        "messages",
        "lower",
        launch=metrics_replicas.model_messages,
        made_up=metrics_replicas.made_up_messages,
        own_count=True,
    ),
    Metric(
        "model_bytes_per_step",
        "B",
        "lower",
        launch=metrics_replicas.model_bytes_per_step,
        made_up=metrics_replicas.made_up_per_step("send"),
        own_count=True,
    ),
    Metric(
        "dropped_share",
        "fraction",
        "lower",
        launch=metrics_replicas.dropped_share,
        made_up=metrics_replicas.made_up_dropped,
    ),
    Metric(
        "barrier_share",
        "fraction",
        "lower",
        launch=metrics_replicas.barrier_share,
        made_up=metrics_replicas.made_up_barrier,
        clocked=True,
    ),
)
OF_LEARNING = (*_LEARNED, *_AT_EQUAL, *_OF_REPLICAS)
