"""Whatever a file says of operators' parameters is read, or an error says what is wrong; no memory is taken for it."""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path

import pytest

import minnp.symbol as sym
from minnp import errors

sys.path.insert(0, str(Path(__file__).parent))
from cases import CASES, NAMES, make

pytestmark = pytest.mark.either("texts that are read")
TEXTS = [
    "1000000000", "-1", "0", "999999999999999999999", "(" * 200 + ")" * 200, "(" * 100_000, "[]", "()", "(1000000000,)",
    "(1000000000,1000000000)", "None", "nan", "inf", "1e400", "9" * 5000, "abc", "(True,)", "('a',)", "(None,)", "1L",
    "float128", "M8[ns]", "-1000000000", "\0", "(1.5,)", "(0,0)", "(-1,-1)",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_whatever_a_parameter_is(name: str) -> None:
    inputs, parameters = CASES[name][0]
    described = json.loads(make(sym, name, parameters, len(inputs)).tojson())
    shapes = {f"x{i}": x if isinstance(x, tuple) else x.shape for i, x in enumerate(inputs)}
    attributes = described["nodes"][described["heads"][0][0]].setdefault("attrs", {})
    for parameter in sym.OPERATORS[name].parameters:
        before = attributes.get(parameter)
        first = zlib.crc32(f"{name} {parameter}".encode())
        for text in TEXTS[first % 4 :: 4]:
            attributes[parameter] = text
            try:
                symbol = sym.load_json(json.dumps(described))
                symbol.infer_shape_partial(**shapes)
                symbol.infer_type_partial()
            except (ValueError, TypeError):
                pass  # SymbolError is one
        attributes[parameter] = before
        if before is None:
            del attributes[parameter]


def test_a_number_of_results_that_nobody_can_name_is_refused() -> None:
    with pytest.raises(errors.SymbolError, match="num_outputs='1000000000'; expected num_outputs"):
        sym.SliceChannel(sym.Variable("x"), num_outputs=10**9)
    assert sym.tile(sym.Variable("x"), reps=(10**9, 10**9)).infer_shape(x=(2, 3))[1] == [(2 * 10**9, 3 * 10**9)]
