"""`python -m scaleproof.rank.fork_in_namespaces FOLDER`: the parent of ranks on nodes of namespaces
(parent_in_namespaces.py)."""

from __future__ import annotations

import gc
import os


def main() -> int:
    """Returns the worst exit code of the ranks."""
    gc.disable()  # before any other import, see fork_ranks.py
    from scaleproof.rank import parent_in_namespaces

    return parent_in_namespaces.main()


if __name__ == "__main__":
    # Without the interpreter's teardown, which takes tens of milliseconds; nothing is left to save.
    os._exit(main())
