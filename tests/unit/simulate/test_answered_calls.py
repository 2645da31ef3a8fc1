"""Calls of another run are answered in its order, where the program of the rank was."""

from __future__ import annotations

from scaleproof.simulate.answered_calls import AnsweredCall, CallsInOrder


def test_calls_wait_for_their_turn_and_the_program_for_calls() -> None:
    done, order = list[str](), CallsInOrder([AnsweredCall(1, 2), AnsweredCall(2, 2), AnsweredCall(1, 4)])
    order.ask(2, lambda: done.append("of rank 2"))
    assert order.serve_due(1) is False and not done, "not due"
    assert order.serve_due(2) is True and not done, "rank 1 comes first"
    order.ask(1, lambda: done.append("of rank 1"))
    assert order.serve_due(2) is False and done == ["of rank 1", "of rank 2"]
    assert order.serve_due(3) is False and order.serve_due(4) is True
    order.ask(1, lambda: done.append("again"))
    assert order.serve_due(4) is False and done[-1] == "again"
    order.ask(3, lambda: done.append("more than there were"))
    assert done[-1] == "more than there were"
