"""Metrics of suite narasimhan2014."""

from . import agreement, errors, prediction, processes, savings

METRICS = [*savings.METRICS, *agreement.METRICS, *processes.METRICS, *errors.METRICS, *prediction.METRICS]
