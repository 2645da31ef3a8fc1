"""`python -m tools.strategy_table`: writes the table of all strategies into docs/strategies.md from their descriptors,
between two markers, so that a new strategy needs no line there."""

from __future__ import annotations

from pathlib import Path

from scaleproof.spec import registry
from scaleproof.spec.plugins import Options, StrategyPlugin

PAGE = Path(__file__).resolve().parents[1] / "docs" / "strategies.md"
BEGIN = "<!-- strategies: written by `python -m tools.strategy_table` -->"
END = "<!-- end of strategies -->"
PACE = {"lockstep": "all in the same step", "own": "at their own pace"}
MODEL = {
    "first": "the first rank's",
    "average": "the average",
    "centre": "the servers'",
    "stages": "the stages of the first group together",
}


def table() -> str:
    """A row for each strategy of the harness."""
    rows = [_row(registry.get("strategy", name)) for name in sorted(registry.names("strategy"))]
    return "\n".join(
        [
            "| name | what it does | ranks | at the end | model that is evaluated | options |",
            "|---|---|---|---|---|---|",
            *rows,
        ]
    )


def _row(plugin: StrategyPlugin) -> str:
    traits = plugin.rank_program
    if traits is None:
        of_replicas = [PACE["lockstep"], "equal" if plugin.communicates else "apart", MODEL["first"]]
    else:
        end = traits.end + ("; with `bound` bounded while they train" if traits.bounded is not None else "")
        of_replicas = [PACE[traits.pace], end, MODEL[traits.evaluated]]
    options = [name for name in plugin.options.model_fields if name not in Options.model_fields]
    cells = [f"`{plugin.name}`", plugin.summary, *of_replicas, ", ".join(f"`{name}`" for name in options)]
    return f"| {' | '.join(cells)} |"


def page(text: str) -> str:
    """The page with this table between its markers. Raises ValueError when it has none."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} has no lines {BEGIN!r} and {END!r}")
    return f"{before}{begin}\n{table()}\n{end}{after}"


def main() -> None:
    """Write what changed."""
    text = PAGE.read_text()
    if (made := page(text)) != text:
        PAGE.write_text(made)
        print(f"docs/{PAGE.name}")


if __name__ == "__main__":
    main()
