"""What stands for the store of results where samples are made by hand."""

from __future__ import annotations

from typing import Any

import pandas as pd


class Shelf:
    """A store of samples in memory."""

    def __init__(self) -> None:
        self.frames: dict[str, pd.DataFrame] = {}

    def frame(self, launch: Any) -> pd.DataFrame:
        return self.frames[launch.launch]
