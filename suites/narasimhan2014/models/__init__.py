"""Metrics of suite narasimhan2014."""

from . import agreement, prediction, processes, savings

METRICS = [*savings.METRICS, *agreement.METRICS, *processes.METRICS, *prediction.METRICS]
