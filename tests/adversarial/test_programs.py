"""Programs that strangers wrote do with minnp what they do with NumPy, in every way that minnp runs them.

A run takes a sample that changes with the date; `--all` takes them all. What minnp refuses, with an error of its own
that says why, stands in refused.txt with the reason; nothing may be wrong, nothing may crash.
"""

from __future__ import annotations

import datetime
import warnings
import zlib
from pathlib import Path

import numpy as onp
import pytest

from tests.adversarial.ways import THEMES, WAYS, cases, outcome

REFUSED = Path(__file__).parent / "refused.txt"
SHARE = 8  # a run takes one program of so many


def refused() -> dict[tuple[str, str], str]:
    """(theme::program, way) -> the reason."""
    lines = [line.split(" | ") for line in REFUSED.read_text().splitlines() if line and line[0] != "#"]
    table: dict[tuple[str, str], str] = {}
    for program, ways, reason in lines:
        for way in WAYS if ways == "all" else ways.split(", "):
            assert way in WAYS, f"refused.txt: {way!r} is no way of {program}"
            table[program, way] = reason
    return table


PROGRAMS = {f"{theme}::{name}": make for theme in THEMES for name, make in cases(theme)}


def today(name: str) -> bool:
    return zlib.crc32(f"{name} {datetime.date.today()}".encode()) % SHARE == 0


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_agrees_in_every_way(name: str, request: pytest.FixtureRequest) -> None:
    if not (request.config.getoption("--all") or today(name)):
        pytest.skip("not in today's sample: --all takes every program")
    with warnings.catch_warnings(), onp.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        case, other = PROGRAMS[name]()
    known, differ = refused(), []
    for way in WAYS:
        said = outcome(case, other, way)
        if said.startswith("refused") != ((name, way) in known) or said.split(":")[0] in ("wrong", "crash"):
            differ.append(f"{way}: {said}" + (", but refused.txt lists it" if (name, way) in known else ""))
    assert not differ, "\n".join(differ)


def test_refused_programs_exist_and_say_why() -> None:
    assert all(name in PROGRAMS and len(reason) > 10 for (name, _), reason in refused().items())


def test_there_are_programs_enough() -> None:
    assert len(PROGRAMS) >= 300
