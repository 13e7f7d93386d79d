"""Programs that strangers wrote do with minnp what they do with NumPy, in every way that minnp runs them.

With --dealt, a twelfth of them and a third of those whose arguments live on torch's CPU device; the passes of
`./run test --all` take each once. (All: python -m tests.adversarial.ways, with MINNP_DEVICE=torch on the device.)
What minnp refuses, with an error of its own, and what differs, stand in known.txt with the reason.
"""

from __future__ import annotations

import os
import warnings
import zlib
from pathlib import Path

import numpy as onp
import pytest

from tests.adversarial.ways import THEMES, WAYS, cases, outcome

KNOWN = Path(__file__).parent / "known.txt"
ON_DEVICE = "value on a device"  # where more may differ from NumPy than on its own memory
SECOND = ("grad(grad)", "hvp", "jit(hvp)")
GRADIENTS = [way for way in WAYS if "grad" in way or way == "jvp" or way in SECOND]


def known() -> dict[tuple[str, str], str]:
    """(theme::program, way) -> what its outcome starts with."""
    table: dict[tuple[str, str], str] = {}
    holds = {"": True, "NumPy 1": onp.__version__ < "2", "NumPy 2": onp.__version__ > "2"}
    for line in KNOWN.read_text().splitlines():
        if line.startswith("#"):
            continue
        program, ways, kind, reason = line.split(" | ")
        assert program in PROGRAMS and len(reason) > 10, line
        outcome, _, where = kind.partition(" with ")
        for way in GRADIENTS if ways == "gradients" else ways.split(", "):
            assert way in WAYS or way == ON_DEVICE, line
            if holds[where]:
                table[program, way] = {"refused": "refused", "differs": "wrong"}[outcome]
    return table


PROGRAMS = {f"{theme}::{name}": make for theme in THEMES for name, make in cases(theme)}


ON_A_DEVICE = [name for name in PROGRAMS if zlib.crc32(name.encode()) % 8 == 0]


@pytest.mark.long
@pytest.mark.dealt(parts=48)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_agrees_in_every_way(name: str) -> None:
    agrees(name)


@pytest.mark.long
@pytest.mark.dealt(parts=12)
@pytest.mark.parametrize("name", ON_A_DEVICE)
def test_program_agrees_on_a_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="the torch backend needs torch: pip install torch")
    monkeypatch.setenv("MINNP_DEVICE", "torch")
    agrees(name)


def agrees(name: str) -> None:
    """Raise AssertionError unless a program's outcome is, in every way, what is known of it."""
    with warnings.catch_warnings(), onp.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        case, other = PROGRAMS[name]()
    expected, differ = known(), []
    for way in WAYS:
        said = outcome(case, other, way)
        listed = ON_DEVICE if way == "value" and "MINNP_DEVICE" in os.environ else way
        want = "fine" if way in SECOND and case.real.order < 2 else expected.get((name, listed), "fine")
        if not said.startswith(want):
            differ.append(f"{way}: {said}, where {want} is expected")
    assert not differ, "\n".join(differ)


def test_there_are_programs_enough_and_what_is_known_of_them_says_why() -> None:
    assert len(PROGRAMS) >= 300 and known()
