"""Both lemmas as formulas, and the metrics that are arithmetic on published rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import Field, model_validator

from scaleproof.claims.arithmetic import Amount, Arguments, Count, Published
from scaleproof.claims.metrics import Metric
from scaleproof.spec.errors import FieldError


class EfficientWorkers(Arguments):
    """Workers that keep an efficiency."""

    gpus: Count = Field(description="Workers (G).")
    alpha: float = Field(gt=0, le=1, description="Their efficiency.")

    @model_validator(mode="after")
    def _overhead_can_lower_it_so_far(self) -> EfficientWorkers:
        if self.alpha * self.gpus <= 1:
            raise FieldError("alpha", f"no overhead lowers the efficiency of {self.gpus} workers to 1/{self.gpus}")
        return self


class WorkersWithOverhead(Arguments):
    """Workers, and the overhead of one."""

    gpus: Count = Field(description="Workers (G).")
    R_O: float = Field(ge=0, le=1e9, description="Overhead over computation on one worker.")


class Servers(Arguments):
    """What parameter servers carry in a round."""

    workers: Count = Field(description="Workers (N_w).")
    S_p_MB: Amount = Field(description="Size of the parameters, in MB.")
    B_GBps: Amount = Field(description="Rate of a server, in GB/s.")
    T_C_s: Amount = Field(description="Computation of a round, in s.")


def efficiency(overhead_ratio: float, workers: float) -> float:
    """alpha = (1 + R_O) / (1 + G R_O): computation is divided over G workers, an overhead of R_O times the computation
    on one of them is not."""
    return (1 + overhead_ratio) / (1 + workers * overhead_ratio)


def largest_overhead_ratio(workers: float, alpha: float) -> float:
    """The R_O at which G workers still have the efficiency alpha."""
    return (1 - alpha) / (alpha * workers - 1)


def fewest_servers(nbytes: float, workers: float, server_rate: float, compute_s: float) -> float:
    """N_ps >= 2 S_p N_w / (B_ps T_C), not rounded: push and pull of all workers within a round's computation.
    `server_rate`: bytes/s of one server."""
    return 2 * nbytes * workers / (server_rate * compute_s)


def max_overhead_ratio(x: EfficientWorkers, rows: Published) -> float:
    """max_overhead_ratio = (1 - alpha) / (alpha G - 1)

    Lemma 1 (suite zou2017), solved for R_O: the largest overhead ratio at which G workers still have the efficiency
    alpha. Arithmetic, no launches. The row's `x` has gpus and alpha.
    """
    return largest_overhead_ratio(x.gpus, x.alpha)


def lemma1_speedup(x: WorkersWithOverhead, rows: Published) -> float:
    """lemma1_speedup = G (1 + R_O) / (1 + G R_O)

    The speed-up of G workers by Lemma 1 (suite zou2017). Its limit for many workers is (1 + R_O) / R_O. Arithmetic, no
    launches. The row's `x` has gpus and R_O.
    """
    return float(x.gpus * efficiency(x.R_O, x.gpus))


def min_parameter_servers(x: Servers, rows: Published) -> float:
    """min_parameter_servers = 2 S_p N_w / (B_ps T_C), not rounded

    Lemma 2 (suite zou2017). S_p is the size of the parameters in bytes, N_w the number of workers, B_ps the rate of a
    server in bytes/s, T_C the computation per round in s. The lemma assumes that parameters are spread evenly, that
    there is no incast, and that the workers' links are not full. Arithmetic, no launches. The row's `x` has workers,
    S_p_MB, B_GBps and T_C_s.
    """
    return fewest_servers(x.S_p_MB * 1e6, x.workers, x.B_GBps * 1e9, x.T_C_s)


def lemma_rows_off(x: Arguments, rows: Published) -> float:
    """lemma_rows_off = derived rows of zou2017 for which our functions do not give the printed digits

    A value of 0 means that our formulas agree with every derived row. Arithmetic, no launches.
    """
    return float(sum(_is_off(name, rows) for name, row in rows.items() if row.provenance == "derived"))


LEMMAS: dict[str, tuple[Callable[[Any, Published], float], type[Arguments]]] = {
    "max_overhead_ratio": (max_overhead_ratio, EfficientWorkers),
    "speedup": (lemma1_speedup, WorkersWithOverhead),
    "min_parameter_servers": (min_parameter_servers, Servers),
}
"""The metric of a derived row, and our function for it."""


def _is_off(name: str, rows: Published) -> bool:
    model, form = LEMMAS[rows.metric_of(name, LEMMAS)]
    printed = rows.number(name)
    digits = _digits(printed)
    return f"{model(rows.conditions(name, form), rows):.{digits}f}" != f"{printed:.{digits}f}"


def _digits(value: float) -> int:
    return len(str(value).partition(".")[2])


METRICS = [
    Metric("max_overhead_ratio", "fraction", None, model=max_overhead_ratio, x=EfficientWorkers),
    Metric("lemma1_speedup", "x", "higher", model=lemma1_speedup, x=WorkersWithOverhead),
    Metric("min_parameter_servers", "servers", None, model=min_parameter_servers, x=Servers),
    Metric("lemma_rows_off", "rows", "lower", model=lemma_rows_off),
]
