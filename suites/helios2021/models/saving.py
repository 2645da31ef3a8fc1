"""Metrics of nodes that are switched off and on."""

from __future__ import annotations

from scaleproof.claims.noted import noted

METRICS = [
    noted("utilisation_before", "%", None, """
        Used nodes over all nodes, in % (suite helios2021): what it is while all nodes stay on.
        """, range=(0, 100)),
    noted("utilisation_with_ces", "%", "higher", """
        Used nodes over nodes that are on, in % (suite helios2021).

        utilisation_with_ces = 100 * mean over steps of (used nodes / nodes that are on)
        """, range=(0, 100)),
    noted("utilisation_gain", "percentage points", "higher", """
        What switching nodes off adds to the utilisation, in percentage points (suite helios2021).

        utilisation_gain = [utilisation_with_ces](utilisation_with_ces.md) - [utilisation_before](utilisation_before.md)
        """, range=(-100, 100)),
    noted("nodes_off", "nodes", "higher", """
        Nodes that are off, in the mean over time (suite helios2021).
        """),
    noted("running_nodes", "nodes", None, """
        Nodes in use, in the mean over time (suite helios2021).
        """),
    noted("active_nodes", "nodes", None, """
        Nodes that are on, in the mean over time (suite helios2021).
        """),
    noted("spare_nodes", "nodes", "lower", """
        Nodes that are on and not in use, in the mean over time (suite helios2021).
        """),
    noted("total_nodes", "nodes", None, """
        Nodes of the cluster (suite helios2021).
        """),
    noted("wakes_per_day", "1/day", "lower", """
        How often nodes are switched on because more are needed than are on, a day (suite helios2021).
        """),
    noted("short_steps", "count", "lower", """
        Steps at which fewer nodes are on than are used (suite helios2021).

        If more nodes are needed than are on, the rule switches them on at once, so that there are none.
        """, own_count=True),
    noted("nodes_per_wake", "nodes", None, """
        Nodes that one wake-up switches on, in the mean (suite helios2021).
        """),
    noted("forecast_smape", "%", "lower", """
        Error of the forecast of used nodes, in % (suite helios2021).

        forecast_smape = 100 * mean of |forecast - used| / ((|forecast| + |used|) / 2)

        Over all steps that the rule looks ahead at, from every step of the test.
        """),
    noted("forecast_rmse", "nodes", "lower", """
        Root of the mean square of the error of the forecast of used nodes (suite helios2021). See
        [forecast_smape](forecast_smape.md).
        """),
    noted("forecast_gain", "x", "higher", """
        How much better a forecast is than the same time yesterday (suite helios2021).

        forecast_gain = [forecast_rmse](forecast_rmse.md) of yesterday's values / forecast_rmse of the forecast

        1: no better.
        """),
]  # fmt: skip
