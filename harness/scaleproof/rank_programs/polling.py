"""A poll as calls, which a driver carries out in place of the effect."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from scaleproof.rank_programs.effects import Call, Effect, Poll, Sleep
from scaleproof.rank_programs.rank_program import FINISHED, GONE
from scaleproof.transports.mailbox import Lost

_NOTHING = np.empty(0, np.float32)


def polling(effect: Poll) -> Generator[Effect, Any, int]:
    """Asks the peers one after the other, all of them, until they are far enough; the result is that of the effect."""
    asked, least = 0, -math.inf
    while least < effect.least:
        if asked:
            yield Sleep(effect.seconds)
        peers, least = effect.peers(), math.inf
        for peer in peers:
            answer = yield Call(peer, _NOTHING, FINISHED, control=True)
            least = min(least, GONE if isinstance(answer, Lost) else float(answer[0]))
        asked += len(peers)
    return asked
