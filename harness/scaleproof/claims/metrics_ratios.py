"""Pages of the metrics that are ratios, or differences, of one metric of single launches."""

from __future__ import annotations

PAGES = {
    "speedup": """
        speedup = median throughput of the cases / median throughput of the base cases

        It is a ratio of medians over launches, never a mean of ratios. Every claim names its base and the base's
        absolute throughput. Threads per rank are equal on both sides. Suites of this project keep the global minibatch
        (strong scaling). If the minibatch grows in proportion to the ranks (weak scaling), the formula is the same. If
        a suite has an arm that uses the same number of cores in one process, this base is shown too. Interval:
        percentile bootstrap over launches, by blocks where both sides ran in the same blocks. If the speed-up is above
        the number of ranks (super-linear), look for effects of caches, or for a base that was not the best single
        process.
        """,
    "program_ratio": """
        program_ratio = median program_s of the cases / median program_s of the base cases

        It compares the time that a suite's own program takes in two ways of running it, such as predicted and emulated:
        1 means equal, below 1 that the cases are faster. See [program_s](program_s.md). Interval: as of
        [speedup](speedup.md).
        """,
    "resident_ratio": """
        resident_ratio = median resident_peak of the cases / median resident_peak of the base cases

        Below 1 the cases need less memory. Libraries are on both sides. See [resident_peak](resident_peak.md).
        Interval: as of [speedup](speedup.md).
        """,
    "parallel_efficiency": """
        parallel_efficiency = speedup / (ranks of the cases / ranks of the base)

        A value of 1 is ideal, in strong and in weak scaling alike, since throughput counts samples. The base and the
        kind of scaling are shown with the number. For where the remaining time goes, see docs/decomposition.md. The
        interval is that of [speedup](speedup.md), divided by the same number.
        """,
    "level_error": """
        level_error = median over cases of | throughput at one level of evidence / throughput at another - 1 |

        A case counts if both levels have it. Two cases are the same if they differ only in how they were run (fabric,
        nodes, compute, dilation, shrink, steps, warm-up, costs, names). Each side is the median over launches. The
        interval is that of the median over cases (order statistics). `reason` names the case with the largest
        difference.
        """,
    "largest_level_error": """
        largest_level_error = largest over cases of | throughput at one level of evidence / throughput at another - 1 |

        See [level_error](level_error.md). It is the largest error among the compared cases and does not estimate the
        error of a further case. It has no interval, because it is the largest of medians that are themselves uncertain.
        """,
}
"""Text of the metrics' pages in docs/metrics/."""
