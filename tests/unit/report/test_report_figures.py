"""Figures: reproducible bytes, colours of the page, dots with titles and links."""

from __future__ import annotations

import re

import numpy as np
import pytest

from scaleproof.report.figures.curves import Curve, curves, median_curve
from scaleproof.report.figures.dots import Dot
from scaleproof.report.figures.kinds import Mark, Plot, Series, kinds
from scaleproof.report.figures.scaling import Point, scaling
from scaleproof.report.figures.sizes import SizePoint, sizes
from scaleproof.report.figures.sparkline import sparkline
from scaleproof.report.figures.split import split
from scaleproof.report.figures.style import key_mark, looks

ARMS = looks({"tcp": "tcp", "tcp_tree": "tcp", "gloo": "gloo", "alone": None})


def points(hollow: bool = False) -> dict[str, list[Point]]:
    dots = [Dot(2, 10.0, hollow, "launch <x>: 10", "runs/x.html")]
    return {
        "tcp": [Point(1, 5.0, 4.0, 6.0, hollow, []), Point(2, 10.0, 9.0, 11.0, hollow, dots)],
        "gloo": [Point(2, 8.0, None, None, hollow, [])],
    }


def plotted(kind: str, values: list[float], log: bool = False, ideal: float | str | None = None) -> str:
    """One series of measured values at 1, 2, 4, ... ranks, by a kind of figure."""
    marks = tuple(
        Mark(2.0**index, value, None, None, "measured", False, f"mark {value}", "#x")
        for index, value in enumerate(values)
    )
    return kinds()[kind].draw(Plot("label", (Series("tcp", ARMS["tcp"], marks),), "x", "y", log, ideal))


def labels_of(picture: str) -> set[str]:
    return set(re.findall(r">([0-9.]+)</text>", picture))


def test_the_same_points_give_the_same_bytes_without_a_date() -> None:
    first, second = (scaling("label", points(), ARMS, 5.0) for _ in range(2))
    assert first == second
    assert "dc:date" not in first


def test_no_colour_is_left_that_dark_mode_cannot_change() -> None:
    pictures = [
        scaling("l", points(), ARMS, 5.0),
        split("l", {"tcp": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)}),
        sizes("l", {"tcp": [SizePoint(8, 1.0, None, None, False)]}, ARMS, "q"),
    ]
    for picture in pictures:
        assert set(re.findall(r"#[0-9a-fA-F]{6}\b", re.sub(r'(url\(|href=")#\w+', "", picture))) == set()
        assert "var(--" in picture


def test_a_dot_names_its_launch_and_leads_to_it() -> None:
    picture = scaling("label", points(), ARMS, 5.0)
    assert "<title>launch &lt;x&gt;: 10</title>" in picture
    assert 'xlink:href="runs/x.html"' in picture


def test_what_is_not_measured_is_drawn_hollow() -> None:
    hollow = re.findall(r"<use [^>]*fill: var\(--page\)", scaling("label", points(hollow=True), ARMS, 5.0))
    assert len(hollow) == 4, "three medians and one launch"
    assert "fill: var(--page)" not in scaling("label", points(), ARMS, 5.0)


def test_ids_of_two_figures_on_a_page_differ() -> None:
    def ids(picture: str) -> set[str]:
        return set(re.findall(r'\sid="([^"]+)"', picture))

    first, second = scaling("a", points(), ARMS, 5.0), split("b", {"tcp": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)})
    assert ids(first) and ids(second)
    assert not ids(first) & ids(second)
    assert set(re.findall(r"url\(#([^)]+)\)", second)) <= ids(second)


def test_arms_of_one_transport_share_its_colour_but_not_its_marker() -> None:
    assert ARMS["tcp"].colour == ARMS["tcp_tree"].colour != ARMS["gloo"].colour
    assert len({look.marker for look in ARMS.values()}) == len(ARMS)
    assert all("var(--s" in key_mark(look) for look in ARMS.values())


def learned(name: str, steps: list[int], seconds: list[float], values: list[float]) -> Curve:
    numbers = np.array(steps)
    return Curve(name, numbers, (numbers + 1) * 8, np.array(seconds), np.array(values), False)


def test_median_curve_keeps_the_steps_that_all_launches_have() -> None:
    first = learned("a", [0, 1, 2], [0.0, 1.0, 2.0], [9.0, 8.0, 7.0])
    second = learned("b", [1, 2, 3], [3.0, 4.0, 5.0], [6.0, 5.0, 4.0])
    median = median_curve([first, second])
    assert median.steps.tolist() == [1, 2]
    assert median.samples.tolist() == [16, 24]
    assert median.seconds.tolist() == [2.0, 3.0]
    assert median.values.tolist() == [7.0, 6.0]


def test_evaluations_at_set_times_belong_together_by_their_number() -> None:
    first = learned("a", [4, 9, 14], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0])
    second = learned("b", [5, 11, 17], [1.0, 2.0, 3.0], [5.0, 4.0, 3.0])
    median = median_curve([first, second])
    assert median.seconds.tolist() == [1.0, 2.0, 3.0]
    assert median.values.tolist() == [4.0, 3.0, 2.0]


def test_the_median_line_ends_where_most_launches_have_diverged() -> None:
    good = learned("a", [0, 1, 2], [0.0, 1.0, 2.0], [3.0, 2.0, 1.0])
    lost = [learned(name, [0, 1, 2], [0.0, 1.0, 2.0], [3.0, np.nan, np.inf]) for name in "bc"]
    values = median_curve([good, *lost]).values
    assert values[0] == 3.0 and np.isnan(values[1:]).all()
    assert median_curve([good, good, lost[0]]).values.tolist() == [3.0, 2.0, 1.0]


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 0.0]])
def test_a_line_needs_two_values(values: list[float]) -> None:
    assert sparkline(np.array(values), "label") == ""


def test_a_count_of_zero_has_its_mark() -> None:
    points = {"tcp": [SizePoint(8, 0.0, None, None, False), SizePoint(64, 2.0, None, None, False)]}
    marks = [sizes("l", points, ARMS, "copies", counts).count("<title>tcp,") for counts in (False, True)]
    assert marks == [1, 2]


def test_values_of_one_decade_still_have_labels_on_their_axis() -> None:
    points = {"tcp": [SizePoint(8, 1.4, None, None, False), SizePoint(64, 2.9, None, None, False)]}
    labels = re.findall(r">([0-9.]+)</text>", sizes("l", points, ARMS, "speedup"))
    assert sum(1.3 < float(label) < 3.0 for label in labels) >= 2


def test_levels_have_a_logarithmic_axis_where_the_figure_says_so() -> None:
    values = [1.0, 30.0, 900.0]
    assert {"1", "10", "100"} <= labels_of(plotted("levels", values, log=True))
    assert "10" not in labels_of(plotted("levels", values)) and "0" in labels_of(plotted("levels", values))
    assert {"2", "5"} <= labels_of(plotted("levels", [1.5, 6.0], log=True)), "a decade has more than one label"


@pytest.mark.parametrize("values", [[0.021, 0.033], [0.021, 0.4], [0.021, 40.0]])
def test_dots_on_a_logarithmic_axis_have_some_labels_and_room_between_them(values: list[float]) -> None:
    labels = {label for label in labels_of(plotted("dots", values, log=True)) if re.fullmatch(r"[0-9.]+", label)}
    assert 2 <= len(labels) <= 7
    assert "\u00d7" not in plotted("dots", values, log=True), "a label of Matplotlib's own"


@pytest.mark.parametrize("kind", ["levels", "dots"])
def test_negative_values_are_on_the_axis_which_else_begins_at_zero(kind: str) -> None:
    def least(values: list[float]) -> float:
        labels = re.findall(r">([\u2212-]?[0-9.]+)</text>", plotted(kind, values))
        return min(float(label.replace("\u2212", "-")) for label in labels)

    assert least([10.0, 40.0]) >= 0 > least([-28.7, 97.0])


def test_a_forest_has_the_dashed_line_that_the_figure_asks_for_and_shows_it() -> None:
    without, beside = plotted("forest", [1.1]), plotted("forest", [1.1], ideal=4.0)
    assert "stroke-dasharray" not in without and "<title>4</title>" not in without
    assert "<title>4</title>" in beside and "stroke-dasharray" in beside
    assert "2" in labels_of(beside) and "2" not in labels_of(without)


@pytest.mark.filterwarnings("error")
def test_a_figure_of_one_message_size_has_an_axis_around_it() -> None:
    points = {"tcp": [SizePoint(1 << 16, 1.4, 1.3, 1.5, False)]}
    assert ">64\u202fKiB</text>" in sizes("l", points, ARMS, "speedup")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [1.4, 298806.722, 236048.854])
def test_a_figure_of_one_value_has_an_axis_around_it(value: float) -> None:
    points = {name: [SizePoint(1 << 21, value, None, None, False)] for name in ("tcp", "gloo")}
    assert "nan" not in sizes("l", points, ARMS, "time")


def test_a_transport_without_a_colour_of_its_own_takes_one_that_the_page_leaves_free() -> None:
    looks_by_arm = looks({"shm": "shm", "grpc": "grpc", "servers": "tensorflow-grpc", "verbs": "rdma", "alone": None})
    assert len({look.colour for look in looks_by_arm.values()}) == 5
    assert looks_by_arm["grpc"].colour == looks({"grpc": "grpc"})["grpc"].colour


def test_a_launch_without_a_number_leaves_the_others_their_names() -> None:
    steps = np.arange(4)
    good = [
        Curve(name, steps, steps * 8, steps * 0.1, np.array([4.0, 3.0, 2.0, float(end)]), False)
        for end, name in enumerate("ab")
    ]
    lost = Curve("lost", steps, steps * 8, steps * 0.1, np.full(4, np.nan), False)
    picture = curves("l", {"tcp": [lost, *good], "gloo": [lost]}, ARMS, "loss", "steps")
    assert "launch a: ends at 0" in picture and "launch b: ends at 1.00" in picture and "launch lost" not in picture
    assert curves("l", {"gloo": [lost]}, ARMS, "loss", "seconds")


def test_losses_on_a_logarithmic_axis_are_equally_far_apart_by_factors() -> None:
    steps = np.arange(3)
    falling = [Curve("a", steps, steps * 8, steps * 0.1, np.array([100.0, 10.0, 1.0]), False)]
    straight, bent = (str(curves("l", {"tcp": falling}, ARMS, "loss", "steps", log=log)) for log in (True, False))
    assert "10" in straight and straight != bent


def test_a_dashed_line_stands_at_the_value_that_all_would_reach() -> None:
    steps = np.arange(2)
    falling = Curve("a", steps, steps * 8, steps * 0.1, np.array([0.5, 0.25]), False)
    plain, ideal = (str(curves("l", {"tcp": [falling]}, ARMS, "loss", "steps", ideal=at)) for at in (None, 0.1))
    assert ideal.count("stroke-dasharray") == plain.count("stroke-dasharray") + 1


def test_a_line_that_curves_are_compared_with_is_dashed_and_labelled() -> None:
    steps = np.arange(2)
    falling = Curve("a", steps, steps * 8, steps * 0.1, np.array([0.5, 0.25]), False)
    lines = ((), (("target <0.3>", 0.3),))
    plain, compared = (str(curves("l", {"tcp": [falling]}, ARMS, "loss", "steps", compared=each)) for each in lines)
    assert compared.count("stroke-dasharray") == plain.count("stroke-dasharray") + 1
    assert "target &lt;0.3&gt;" in compared and "target" not in plain


def test_transports_keep_their_colour_and_others_take_free_ones() -> None:
    drawn = looks({"shm": "shm", "tcp": "tcp", "new": "new", "newer": "newer", "alone": None})
    assert (drawn["shm"].colour_index, drawn["tcp"].colour_index) == (
        looks({"shm": "shm"})["shm"].colour_index,
        ARMS["tcp"].colour_index,
    )
    assert (
        len({look.colour_index for look in drawn.values()})
        == len({look.marker for look in drawn.values()})
        == len(drawn)
    )
