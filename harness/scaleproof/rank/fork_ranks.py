"""`python -m scaleproof.rank.fork_ranks FOLDER`: the parent of ranks (parent.py)."""

from __future__ import annotations

import gc
import os


def main() -> int:
    """Returns 0 when all ranks ended with 0."""
    # Before any other import: collections during imports free nothing and take a seventh of their time, with
    # TensorFlow a third. `parent.import_for` allows them again.
    gc.disable()
    from scaleproof.rank import parent

    return parent.main()


if __name__ == "__main__":
    # Without the interpreter's teardown, which takes tens of milliseconds; nothing is left to save.
    os._exit(main())
