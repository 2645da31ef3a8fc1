"""The features from which the artifact forecasts used nodes: the same for every step that is forecast, 1 hour old.

S-Lab-System-Group/HeliosArtifact@bdaae10, framework/CES Service: CES_Helios.py, and CES_Philly.py without holidays and
conferences.
"""

from __future__ import annotations

import numpy as np

LAG = 6
"""Steps: rolling statistics are 1 hour old."""
WINDOWS = (3, 6)
"""Steps of the rolling statistics: 30 and 60 minutes."""
THREE_HOURS = 18
STEP = np.timedelta64(600, "s")
SATURDAY = 5
DAYS_OFF = {
    "2020-04-06", "2020-05-01", "2020-05-04", "2020-05-05", "2020-06-25", "2020-06-26",
}  # fmt: skip
DAYS_AT_WORK = {"2020-04-26", "2020-05-09", "2020-06-28", "2020-09-27"}
"""Public holidays of China on working days, and weekends that were worked for them, April to September 2020."""
DEADLINES = ("2020-03-06", "2020-06-06", "2020-09-10")
"""Of conferences (ECCV, NeurIPS, AAAI); the 10 days before them are marked."""
BEFORE_DEADLINE = 10


def calendar(first: np.datetime64, steps: int) -> np.ndarray:
    """(steps, 8): year, month, day, hour, minute, day of the week, day of the year, ISO week."""
    at = first.astype("M8[s]") + STEP * np.arange(steps)
    days, hours = at.astype("M8[D]"), at.astype("M8[h]")
    year, month = days.astype("M8[Y]"), days.astype("M8[M]")
    weekday = (days.astype(int) + 3) % 7
    thursday = days + (3 - weekday).astype("m8[D]")
    week = (thursday - thursday.astype("M8[Y]").astype("M8[D]")).astype(int) // 7 + 1
    columns = (
        year.astype(int) + 1970,
        month.astype(int) % 12 + 1,
        (days - month.astype("M8[D]")).astype(int) + 1,
        (hours - days.astype("M8[h]")).astype(int),
        (at.astype("M8[m]") - hours.astype("M8[m]")).astype(int),
        weekday,
        (days - year.astype("M8[D]")).astype(int) + 1,
        week,
    )
    return np.column_stack(columns).astype(float)


def days_off_and_deadlines(first: np.datetime64, steps: int) -> np.ndarray:
    """(steps, 2): whether nobody works, and whether a conference's deadline is near."""
    days = (first.astype("M8[s]") + STEP * np.arange(steps)).astype("M8[D]")
    free = (days.astype(int) + 3) % 7 >= SATURDAY
    free = (free | np.isin(days, np.array(sorted(DAYS_OFF), "M8[D]"))) & ~np.isin(
        days, np.array(sorted(DAYS_AT_WORK), "M8[D]")
    )
    near = np.zeros(steps, bool)
    for deadline in DEADLINES:
        left = (np.datetime64(deadline) - days).astype(int)
        near |= (left >= 1) & (left <= BEFORE_DEADLINE)
    return np.column_stack([free, near]).astype(float)


def artifact_features(used: np.ndarray, first: np.datetime64, holidays: bool, lag: int = LAG) -> np.ndarray:
    """(steps, features) of each step: the calendar; mean, median and standard deviation of 30 and 60 minutes that ended
    an hour before; the value 3 hours before, and its average with those around it; `holidays`: days off, deadlines.
    `lag`: for a causal forecast, how old all of them must be; the artifact's are 6 steps old."""
    steps, center = np.arange(len(used)), max(THREE_HOURS, lag + 1)

    def old(by: int) -> np.ndarray:
        return np.asarray(used[np.maximum(steps - by, 0)], float)

    columns: list[np.ndarray] = []
    for window in WINDOWS:
        past = np.stack([old(lag + each) for each in range(window)])
        columns += [past.mean(0), np.median(past, 0), past.std(0, ddof=1)]
    columns += [old(center), 0.5 * old(center) + 0.25 * (old(center - 1) + old(center + 1))]
    parts = [calendar(first, len(used)), np.column_stack(columns)]
    return np.hstack([*parts, days_off_and_deadlines(first, len(used))] if holidays else parts)
