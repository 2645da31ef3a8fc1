"""Checks the Python version before anything is imported that an older Python cannot read."""

import sys

NEEDED = (3, 11)


def python_problem(version):  # type: ignore[no-untyped-def]
    """One line if this Python cannot be used, else an empty string."""
    if tuple(version[:2]) == NEEDED:
        return ""
    version_text = ".".join(str(part) for part in version[:2])
    advice = "if you have it, type: make env PYTHON=python3.11"
    return "Python 3.11 is needed and this is {}; {}".format(version_text, advice)  # noqa: UP032


if __name__ == "__main__":
    problem = python_problem(sys.version_info)
    if problem:
        sys.exit("set-up: " + problem)
    if sys.argv[1:2] == ["mpich"]:
        from tools.setup import mpich

        sys.exit(mpich.main(sys.argv[2:]))
    if sys.argv[1:2] == ["extras"]:
        from tools.setup import extras

        sys.exit(extras.main(sys.argv[2:]))
    from tools.setup.run import main

    sys.exit(main(sys.argv[1:]))
