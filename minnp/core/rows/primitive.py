"""Operators: one row per operator in TABLE.

A row says what an operator is: its NumPy kernel (the reference in every test), its gradient rules, what those rules
need kept, the shape and cost of its result, and how tests sample it. Everything else (methods, tests, docs, NEP 18
registration) follows from the table.

Rows work on *values*: NumPy arrays and scalars, tracers, or a backend's buffers; never on arrays they could write to.
Calling a row, `exp(x)`, binds it: on plain NumPy values that is the kernel alone, so a rule runs at NumPy's speed, and
the same rule, given tracers, is itself differentiated or captured.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp


class Table(dict):
    """Rows by name. Printed graphs find those of npx too, which are not loaded with NumPy's names."""

    def __missing__(self, name: str) -> Primitive:
        family = f"minnp.{name.rpartition('.')[0]}"
        if family in ("minnp.npx", "minnp.scipy.special") and family not in sys.modules:
            importlib.import_module(family)
            return self[name]
        raise KeyError(name)


TABLE: dict[str, Primitive] = Table()
NO_PARAMS: dict = {}  # of the many calls without parameters; nobody writes to it


class Primitive:
    """One operator.

    name      unique; NumPy's own name wherever NumPy has one ("linalg.inv", "fft.rfft" inside a submodule)
    numpy     kernel: (*arrays, **params) -> array, scalar, or a tuple of them. Pure; aliases an argument only if `view`
    vjp       gradient rules: a list with one `rule(g, y, *arrays, **params)` (or None: not differentiable; or CONSTANT)
              per array argument, or one `rule(i, g, y, *arrays, **params)` for operators with any number of arrays,
              or a Joint of all arguments.
              A rule returns the cotangent of its argument before un-broadcasting: the tape sums it down to the
              argument's shape and restores its dtype, once, for every row.
              None: no rule at all (a gradient that reaches it raises); CONSTANT: the result is locally constant
              (comparisons, rounding, integer results), so no gradient flows
    jvp       forward rules: "elementwise" (the vjp rules applied to the tangent), "linear" (the operator applied to all
              tangents), "multilinear" (the sum over arguments of the operator with that one replaced by its tangent),
              a list of `rule(t, y, *arrays, **params)`, or None: transposed from the vjp
    accumulate (buffer, g, *arrays, **params): adds the first argument's cotangent into a NumPy buffer in place, where
              that costs less than the rule (reading a slice: O(slice), not O(array)); NumPy values only
    saves     what the rules read: "in" (arguments), "out" (result), "both", or "" (shapes and dtypes only). What is not
              saved reaches a rule as a Meta
    fast      the kernel of traced and compiled code, where it differs from NumPy's: it may round differently
    anywhere  the kernel takes values wherever they live: it is never given host copies of buffers
    view      the kernel may return a view of its first argument
    selects   that view shows some of its elements, each at most once, as they are
    copies    (meta, contiguous, params) -> whether a view row makes a new array of such a first argument; None: never
    idempotent  the row of its own result is that result: floor(floor(x)) is floor(x)
    writes    whether what is written to that view is written to the argument: NumPy's broadcasts refuse it
    scalar    a result without axes is a number, as of NumPy's ufuncs, or, if False, an array, which can be written to;
              None: what the first argument is
    layout    "like": the result lies in memory as the first argument does; "elementwise": as that of a ufunc; None: in
              C order, or as NumPy finds out
    dynamic   what of the result depends on the elements of the arguments: "shape", "dtype" or nothing
    batch     the rule of vmap by its name in vmap.RULES, or a function as those; None: elementwise, else the row runs
              example by example
    takes     how NumPy's function of this name hands its arguments to the row, for the fast path on devices:
              ("reduction", *keywords) an array, perhaps an axis; ("list", "axis") a list of arrays, perhaps an axis;
              ("view", *params) the array and all params; ("spread", param) the array and numbers, or a tuple of them;
              ("traced", n) n arrays; and, without a tracer, ("arrays", n), ("one", param) an array and perhaps a
              number, ("some", param) a number or a tuple of some, ("cast", "dtype")
    shape     (metas, params) -> Meta of the result, or None: found by running the kernel on dummies
    flops     (metas, params, result meta) -> int floating point operations, or None: not counted
    kernels   exceptions to "same name in the backend's namespace": {"mxnet": "npx.batch_norm", "torch": None}
    worth     (backend name, arrays, params) -> bool: whether `auto` should leave NumPy for a backend at this size
    samples   () -> list of (arrays, params) inside the operator's domain, for the generic tests
    """

    __slots__ = (
        "accumulate",
        "anywhere",
        "batch",
        "calls",
        "copies",
        "dynamic",
        "elementwise",
        "fast",
        "flops",
        "formulas",
        "idempotent",
        "jvp",
        "kernels",
        "layout",
        "loops",
        "name",
        "numpy",
        "samples",
        "saves",
        "scalar",
        "selects",
        "shape",
        "takes",
        "view",
        "vjp",
        "worth",
        "writes",
    )

    def __init__(self, name: str, numpy: Callable, **facts: Any) -> None:
        self.name, self.numpy, self.calls = name, numpy, 0
        self.loops = isinstance(numpy, onp.ufunc) and numpy.signature is None  # over elements, whatever its rules
        for fact, default in DEFAULTS.items():
            setattr(self, fact, facts.pop(fact, default))
        self.fast = self.fast or numpy
        self.formulas: dict[Any, dict] = {}  # of its rules (transforms/formulas.py)
        # of the operators that need to be fast on ten elements, whose rules and kernel need nothing else
        rules = self.vjp if type(self.vjp) is list else [None]
        plain = self.worth is None and self.accumulate is None and not self.view
        self.elementwise = plain and self.jvp == "elementwise" and all(map(callable, rules))
        if facts:
            raise TypeError(f"primitive({name!r}) got unknown facts {sorted(facts)}; known: {sorted(DEFAULTS)}")

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __reduce__(self) -> tuple:
        return lookup, (self.name,)

    def __call__(self, *args: Any, **params: Any) -> Any:
        return call(self, args, params)

    def rule(self, i: int) -> Callable | None:
        """The vjp rule of array argument i as rule(g, y, *arrays, **params), or None, or CONSTANT."""
        vjp = self.vjp
        if vjp is None or vjp is CONSTANT:
            return vjp
        if callable(vjp):
            return lambda g, y, *arrays, **params: vjp(i, g, y, *arrays, **params)
        return vjp[i] if i < len(vjp) else None


class Joint:
    """Gradient rules that share their work, as a row's `vjp`.

    rule   (wanted, g, y, *arrays, **params) -> a cotangent for each array; `wanted` says which ones will be used: what
           is returned for the others does not matter. Of several results, those from which nothing flows have g None
    """

    __slots__ = ("rule",)

    def __init__(self, rule: Callable) -> None:
        self.rule = rule

    def __call__(self, i: int, g: Any, y: Any, *arrays: Any, **params: Any) -> Any:
        """The cotangent of array argument i alone."""
        return self.rule([k == i for k in range(len(arrays))], g, y, *arrays, **params)[i]


CONSTANT = "constant"
DEFAULTS: dict[str, Any] = {
    "vjp": None,
    "jvp": None,
    "accumulate": None,
    "fast": None,
    "anywhere": False,
    "saves": "both",
    "view": False,
    "selects": False,
    "copies": None,
    "idempotent": False,
    "writes": True,
    "scalar": True,
    "layout": None,
    "dynamic": "",
    "batch": None,
    "takes": (),
    "shape": None,
    "flops": None,
    "kernels": {},
    "worth": None,
    "samples": None,
}


def primitive(name: str, numpy: Callable, **facts: Any) -> Primitive:
    """Add the operator `name` to TABLE and return its row (see Primitive for the facts)."""
    if name in TABLE:
        raise ValueError(f"primitive {name!r} is already in the table: one row per operator")
    TABLE[name] = row = Primitive(name, numpy, **facts)
    return row


def lookup(name: str) -> Primitive:
    return TABLE[name]


class Shaped:
    """What follows from `shape`."""

    __slots__ = ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Meta(Shaped):
    """Shape and dtype of a value, without its data.

    shape   lengths of the axes; dtype: what np.dtype takes

    >>> program = fx.symbolic_trace(lambda x: np.exp(x))
    >>> graph = fx.propagate_shapes(program.graph, fx.Meta((2, 3), numpy.dtype("float32")))
    >>> graph.nodes[1].meta["value"].shape
    (2, 3)
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:
        self.shape, self.dtype = tuple(shape), dtype

    def __repr__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Meta) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))


# ------------------------------------------------------------------ common facts of rows
def per_element(cost: int) -> Callable:
    """flops fact: `cost` operations for every element of the result, the first of several."""
    return lambda metas, params, out: cost * (out[0] if isinstance(out, tuple) else out).size


def per_input(cost: int) -> Callable:
    """flops fact: `cost` operations for every element of the first argument."""
    return lambda metas, params, out: cost * metas[0].size


def call(row: Primitive, args: tuple, params: dict) -> Any:
    """Bind a row; set by core.dispatch, which imports this module."""
    raise RuntimeError("minnp.core.rows.dispatch is not imported")
