"""Recursion on expressions without the interpreter's stack, each object once."""

from __future__ import annotations

from typing import Any, Callable, Generator

Steps = Generator[tuple["Memo", Any], Any, Any]


class Memo:
    """A function of an object, written as a generator: `yield memo, other` evaluates to memo(other).

    Results are kept by identity, together with the object, which must not be freed while its id is in use.
    """

    def __init__(self, steps: Callable[[Any], Steps]) -> None:
        self._steps = steps
        self._done: dict[int, tuple[Any, Any]] = {}

    def __call__(self, root: Any) -> Any:
        known = self._done.get(id(root))
        if known is not None:
            return known[1]
        stack = [(self, root, self._steps(root))]
        answer = None
        while stack:
            memo, one, running = stack[-1]
            try:
                wanted, other = running.send(answer)
            except StopIteration as stop:
                answer = stop.value
                memo._done[id(one)] = one, answer
                stack.pop()
                continue
            known = wanted._done.get(id(other))
            if known is not None:
                answer = known[1]
            else:
                stack.append((wanted, other, wanted._steps(other)))
                answer = None
        return answer

    def known(self, one: Any) -> Any:
        """The result where it has been asked for before; else None."""
        return self._done.get(id(one), (None, None))[1]
