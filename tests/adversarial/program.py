"""How a program of the corpus says what it takes: its arguments, and how often it is differentiable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Program:
    """One program: f(*arguments(generator)), differentiable `order` times around these arguments."""

    f: Callable
    arguments: Callable
    order: int = 2
    rtol: float = 1e-6
    nums: bool = True

    def __call__(self, *args: Any) -> Any:
        return self.f(*args)


def program(arguments: Callable, **options: Any) -> Callable[[Callable], Program]:
    return lambda f: Program(f, arguments, **options)
