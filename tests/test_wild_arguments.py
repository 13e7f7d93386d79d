"""Public functions, methods and operators with wild arguments, ours beside NumPy's on equal copies.

Each call is made twice from one seed: the same decisions build the same arguments out of our functions and out of
NumPy's. What must be the same: the result (bits, dtype, shape, strides, whether it may be written, whether it is an
array, a scalar of NumPy's or an object of Python's, whose memory it shows) or the exception's type, the warnings'
categories, and the arguments afterwards.

MINNP_FUZZ=100000 makes so many calls; `python -m tests.test_wild_arguments FIRST COUNT` prints what differs in some.
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
import random
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import minnp.numpy as np
from minnp.core.compiled import fastpath

CALLS = int(os.environ.get("MINNP_FUZZ", "3000"))
NUMPY_2 = numpy.lib.NumpyVersion(numpy.__version__) >= "2.0.0"

# Differences that stay: (the call, what differs), both as regular expressions, and why.
STAYING: list[tuple[str, str, str]] = [
    (r"__array_priority__\(", "100.0", "the result is ours, or that of a class with a still higher priority"),
    (r"__array__\(", "NumPy's, which is not ours", "NumPy takes no class but its own from it"),
    (
        r"issubdtype|can_cast|promote_types|dtype|fromiter",
        "Cannot construct a dtype from an array",
        "numpy.dtype is NumPy's own: it refuses its own arrays, and takes the dtype of whatever else has one",
    ),
    (
        r"^fft\.(i|r|ir|h|ih)?fft\(.*\[.*0.*\]",
        "^result: \\('array'",
        "NumPy transforms whatever lies behind an empty array",
    ),
    (
        r"(view|bytes|buffer|byteswap|field|strides|dtype = )\(.*(float128|complex256)",
        "",
        "long doubles have bytes that nobody sets",
    ),
    (r"strings\.zfill", "result", "NumPy's own differs from run to run"),
    (
        r"^(lexsort|can_cast)\(",
        "missing .* required|raised",
        "of an argument that is missing and one that is wrong, the other is said",
    ),
    (
        r"ndarray\.__\w+__\(",
        "MaskedArray",
        "an operator by its name does what the operator does: a masked array, a subclass of NumPy's, is asked first",
    ),
    (r"__format__\(", "SystemError", "NumPy reports an error of its own where the format is no text"),
    (r"(memoryview|bytes)\(", "a buffer cannot say all", "numpy.asarray(x) would lose the dtype: it asks for the same"),
    (
        r"__(eq|ne)__\(",
        "Cannot compare structured",
        "asked by name, not by an operator, where NumPy leaves the refusal to the other array",
    ),
]
if fastpath is None:  # without the C part
    STAYING += [
        (r"^i?concat\(", "Concatenation", "a slot that Python's classes cannot fill"),
        (r"^(bytes|memoryview)\(", "SystemError", "before Python 3.12 no exception leaves the slot (arrays/array.py)"),
    ]
if not NUMPY_2:
    STAYING += [
        (r"^(reshape|clip|take_along_axis)\(", "missing . required positional argument", "the Array API standard's"),
        (r"__array__\(.*dtype=", "", "NumPy 2 calls it with the keyword, which NumPy 1 has not"),
        (r"^linalg.solve\(", "raised", "the Array API standard's: both arguments are asked for their axes first"),
    ]


# ------------------------------------------------------------------ what is called
def _names(text: str) -> list[str]:
    return text.split()


# settings, what prints, files, what gives whatever lies in new memory, addresses, hooks that others call
NOT_CALLED = set(
    _names(
        """
        errstate seterr geterr seterrcall geterrcall setbufsize getbufsize set_printoptions get_printoptions
        printoptions show_config show_runtime get_include info lookfor source test set_string_function who
        deprecate deprecate_with_doc add_docstring add_newdoc add_newdoc_ufunc set_numeric_ops safe_eval disp
        byte_bounds maximum_sctype obj2sctype sctype2char issctype issubsctype find_common_type issubclass_
        get_array_wrap geterrobj seterrobj tracemalloc_domain nested_iters save savez savez_compressed savetxt
        load loadtxt genfromtxt fromfile fromregex recfromcsv recfromtxt tofile dump empty empty_like spawn
        bit_generator data ctypes base __array_interface__ __array_struct__ __sizeof__ __reduce__
        __reduce_ex__ __setstate__ __dlpack__ dumps __array_finalize__ __init__ __new__ __class__
        __getattribute__ __setattr__ __delattr__ __dir__ __init_subclass__ __subclasshook__ __class_getitem__
        __array_namespace__ __array_prepare__ __array_wrap__ __array_ufunc__ __array_function__ __doc__
        __buffer__
        """
    )
)
# arguments of these decide how much memory is taken
SIZING = re.compile(
    r"zeros|ones|full|arange|space|eye|identity|tri|tile|repeat|resize|pad|bartlett|blackman|hamming|hanning|kaiser|indices|"
    r"diag|vander|bincount|fft|random|broadcast|meshgrid|fromiter|fromfunction|histogram|poly|ix_|unravel|kron|zfill|just|"
    r"center|expandtabs|multiply|roll|outer|mul|pow|shift|binary_repr|base_repr|as_strided|window|ndarray|matrix_power|"
    r"reshape|setitem|insert|unpackbits|convolve|correlate|roots|frombuffer|take|choose|format|__index__|array2string"
)


def _functions(module: Any, prefix: str) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {n: getattr(module, n, None) for n in dir(module) if n[0] != "_" and n not in NOT_CALLED}
    return [
        f"{prefix}{n}"
        for n, x in found.items()
        if callable(x)
        and not isinstance(x, (type, numpy.ufunc))
        and type(x).__name__ not in ("PytestTester", "_CopyMode")
    ]


UFUNCS = sorted({n for n in dir(numpy) if isinstance(getattr(numpy, n, None), numpy.ufunc)} - NOT_CALLED)
UFUNC_METHODS = ["reduce", "accumulate", "reduceat", "outer", "at"]
_MEMBERS = [n for n in dir(numpy.ndarray) if n not in NOT_CALLED]
METHODS = [n for n in _MEMBERS if callable(getattr(numpy.ndarray, n))]
ATTRIBUTES = [n for n in _MEMBERS if n not in METHODS]
OPERATORS = _names(
    """
    add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift lt le eq ne gt ge getitem contains iadd
    isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift irshift divmod concat neg pos abs invert
    index truth not_ len bool int float complex round repr str list iter hash bytes pow3 setitem delitem sum max
    min sorted reversed tuple enumerate zip format isinstance memoryview
    """
)
DRAWS = [n for n in dir(numpy.random.Generator) if n[0] != "_" and n not in NOT_CALLED]
TARGETS = {
    "": (30, _functions(numpy, "")),
    "linalg": (7, _functions(numpy.linalg, "linalg.")),
    "fft": (6, _functions(numpy.fft, "fft.")),
    "char": (4, _functions(numpy.char, "char.")),
    "lib": (2, ["lib.stride_tricks.sliding_window_view", "lib.scimath.sqrt"]),
    "ufunc": (15, UFUNCS),
    "ufunc method": (10, [f"{u}.{m}" for u in UFUNCS for m in UFUNC_METHODS]),
    "method": (17, METHODS),
    "attribute": (3, ATTRIBUTES),
    "operator": (10, OPERATORS),
    **({"strings": (3, _functions(numpy.strings, "strings."))} if NUMPY_2 else {}),
    "random": (6, DRAWS),
}
PARAMETERS = {  # of methods that show no signature
    "astype": "dtype order= casting= subok= copy=",
    "view": "dtype",
    "reshape": "shape order=",
    "transpose": "axes",
    "resize": "shape",
    "fill": "value",
    "item": "args",
    "tobytes": "order=",
    "byteswap": "inplace",
    "getfield": "dtype offset=",
    "setfield": "value dtype offset=",
    "setflags": "write= align=",  # `uic` lets go of the memory of views
    "sort": "axis= kind= order=",
    "argsort": "axis= kind= order=",
    "partition": "kth axis=",
    "argpartition": "kth axis=",
    "flatten": "order=",
    "copy": "order=",
    "ravel": "order=",
    "swapaxes": "axis1 axis2",
    "squeeze": "axis=",
    "__array__": "dtype=",
    "newbyteorder": "order=",
    "to_device": "mode",
    "put": "indices values mode=",
    "take": "indices axis= out= mode=",
    "choose": "choices out= mode=",
    "repeat": "repeats axis=",
    "searchsorted": "v side= sorter=",
    "dot": "b out=",
    "clip": "a_min a_max out=",
    "trace": "offset= axis1= axis2= dtype= out=",
    "diagonal": "offset= axis1= axis2=",
    "round": "decimals= out=",
    "compress": "condition axis= out=",
    **dict.fromkeys(_names("sum prod"), "axis= dtype= out= keepdims= initial= where="),
    **dict.fromkeys(_names("mean"), "axis= dtype= out= keepdims= where="),
    **dict.fromkeys(_names("std var"), "axis= dtype= out= ddof= keepdims= where="),
    **dict.fromkeys(_names("max min"), "axis= out= keepdims= initial= where="),
    **dict.fromkeys(_names("any all"), "axis= out= keepdims= where="),
    **dict.fromkeys(_names("argmax argmin"), "axis= out= keepdims="),
    **dict.fromkeys(_names("cumsum cumprod"), "axis= dtype= out="),
    **dict.fromkeys(
        _names("nonzero tolist conj conjugate __copy__ __len__ __bool__ __int__ __float__ __complex__"), ""
    ),
    **dict.fromkeys(_names("__index__ __iter__ __repr__ __str__ __hash__ __neg__ __pos__ __abs__"), ""),
    "__deepcopy__": "memo",
    # functions
    "concatenate": "tup axis= out= dtype= casting=",
    "where": "condition x y",
    "array": "object dtype= copy= order= subok= ndmin=",
    "asarray": "object dtype= order=",
    "asanyarray": "object dtype= order=",
    "ascontiguousarray": "object dtype=",
    "asfortranarray": "object dtype=",
    "zeros": "shape dtype= order=",
    "arange": "start stop= step= dtype=",
    "einsum": "subscripts a b",
    "einsum_path": "subscripts a b",
    "frombuffer": "buffer dtype= count= offset=",
    "fromiter": "iter dtype",
    "fromstring": "string dtype= sep=",
    "inner": "a b",
    "vdot": "a b",
    "lexsort": "keys axis=",
    "can_cast": "dtype dtype casting=",
    "promote_types": "dtype dtype",
    "min_scalar_type": "a",
    "copyto": "dst src casting= where=",
    "putmask": "a mask values",
    "packbits": "a axis= bitorder=",
    "unpackbits": "a axis= count= bitorder=",
    "bincount": "x weights= minlength=",
    "ravel_multi_index": "indices shape mode= order=",
    "unravel_index": "indices shape order=",
    "datetime_data": "dtype",
    "busday_count": "a b",
    "busday_offset": "a n",
    "is_busday": "a",
    "datetime_as_string": "a unit=",
    "may_share_memory": "a b",
    "shares_memory": "a b",
    "result_type": "a b",
    "broadcast_shapes": "shape shape",
    "meshgrid": "a b copy= sparse= indexing=",
    "block": "tup",
    "integers": "low high= size= dtype= endpoint=",
}

# ------------------------------------------------------------------ what they are called with
SHAPES = [
    (3,),
    (4,),
    (3, 4),
    (3, 1),
    (1, 4),
    (4, 3),
    (4, 4),
    (2, 3, 4),
    (3, 3),
    (),
    (1,),
    (0,),
    (0, 4),
    (1, 1),
    (2, 2, 2),
]
COMMON = ["f8"] * 8 + ["i8"] * 5 + ["f4"] * 3 + ["?"] * 3 + ["c16", "c16", "i4", "u1", "i1", "c8", "f2", "u8"]
RARE = [
    "g",
    "G",
    ">f8",
    ">i4",
    ">c8",
    "U2",
    "S3",
    "O",
    "O",
    "M8[D]",
    "m8[s]",
    "M8[ns]",
    "m8",
    "i4,f4",
    "V3",
    "u2",
    ">U2",
]
INTEGERS = [0, 1, 2, 3, -1, -2, 4, 5, -5, 7]
HUGE = [255, 256, -129, 2**31, -(2**31) - 1, 2**53 + 1, 2**63, -(2**63), 2**64, 10**30]
FLOATS = [0.0, 1.0, -0.0, 0.5, 2.5, -1.5, 3.0, float("nan"), float("inf"), float("-inf"), 1e300, 5e-324, -3.25]
TEXTS = ["", "a", "ab", "B", "-1", "1.5", " x "]
CASTINGS = ["no", "equiv", "safe", "same_kind", "unsafe", "same_value", "wrong"]
WORDS = {
    "order": ["C", "F", "A", "K", "c", None, "X", 3],
    "casting": CASTINGS,
    "mode": [
        "raise",
        "wrap",
        "clip",
        "constant",
        "edge",
        "reflect",
        "symmetric",
        "full",
        "same",
        "valid",
        "r",
        "maximum",
    ],
    "kind": ["quicksort", "stable", "mergesort", "heapsort", "x", None],
    "side": ["left", "right", "l", "x"],
    "method": ["linear", "nearest", "lower", "median_unbiased", "x", "exact", "inverted_cdf", "midpoint"],
    "norm": [None, "ortho", "forward", "backward", "x"],
    "ord": [None, 2, 1, -2, "fro", "nuc", 0, 3, float("inf"), "x", 0.5],
    "indexing": ["xy", "ij", "x"],
    "UPLO": ["L", "U", "x"],
    "bitorder": ["big", "little", "x"],
    "subscripts": ["ij,jk->ik", "ij,ij", "ii", "i,i->", "...i->...", "ij->ji", "i", "ij,j", "x..", "ii->i", "...,..."],
    "unit": ["D", "s", None, "x", "auto"],
    "sep": ["", ",", " "],
    "trim": ["f", "b", "fb", "x"],
    "bins": [3, 1, 0, "auto", "fd", -1, [0, 1, 2], [0.0, 0.5, 3.0], [2, 1]],
    "missing": [True, False, None],
}


class Thing:
    """An object that knows nothing of arrays."""

    def __repr__(self) -> str:
        return "Thing"

    def __call__(self, *args: Any) -> Any:
        return args[0]


THING = Thing()


class Memo(dict):
    """What copy.deepcopy remembers, by the objects' addresses."""


ARRAYS_OF = {
    "b": [True, False],
    "i": [0, 1, 2, 3, -1, -2, 5, 100, 127, -128],
    "u": [0, 1, 2, 3, 5, 100, 255],
    "f": [*FLOATS, 1.0, 2.0, 3.0, 0.25, -2.0, 4.0, 100.0, 1e-3],
    "c": [1, 1j, 2 - 3j, 0, complex("nan"), complex(float("inf"), 1), -1, 0.5 + 0.5j, -2j, 3],
    "U": TEXTS,
    "T": TEXTS,
    "S": [t.encode() for t in TEXTS],
    "O": [1, 2.5, "a", None, (1, 2), True, 10**20, 3, -1, 0, [1]],
    "M": ["2020-01-01", "1969-12-31", "NaT", "2024-02-29", "1970-01-01"],
    "m": [0, 1, -3, "NaT", 86400],
    "V": [b"abc", b"", b"\0x"],
}


class Wild:
    """The arguments of one call, decided by a seed and made by one library."""

    def __init__(self, seed: int, library: Any, ours: bool) -> None:
        self.r, self.np, self.ours = random.Random(seed), library, ours
        self.made: list = []
        self.rare = RARE
        self.shape = self.r.choice(SHAPES)
        self.dtype_ = self.r.choice(COMMON if self.r.random() < 0.75 else RARE)
        self.sizing = self.accumulates = False

    def chance(self, p: float) -> bool:
        return self.r.random() < p

    def integer(self) -> Any:
        n = self.r.choice(INTEGERS if self.sizing or self.chance(0.9) else HUGE)
        how = self.r.random()
        if how < 0.08:
            return self.r.choice([numpy.int64, numpy.int8, numpy.float64])(max(-128, min(n, 127)))
        if how < 0.12:
            return self.np.array(max(-128, min(n, 127)))  # a 0-d array
        return n

    def scalar(self) -> Any:
        kind = self.r.random()
        if kind < 0.35:
            return self.integer()
        if kind < 0.6:
            x = self.r.choice(FLOATS)
            return 3.0 if self.sizing and abs(x) > 100 else x
        if kind < 0.72:
            kinds = ["f4", "f2", "i1", "u8", "g", "c8", "?", "M8[D]", "m8[s]", "U2", "f8", "i8"]
            dtype = numpy.dtype(self.r.choice(kinds))
            return numpy.array([self.r.choice(ARRAYS_OF[dtype.kind])]).astype(dtype)[0]
        if kind < 0.8:
            return self.r.choice([True, False, 1j, 2 - 1j])
        return self.r.choice([None, Ellipsis, "a", "", b"x", THING, (), [], {}, slice(None), numpy.float64, "f8"])

    def nested(self) -> Any:
        shape = self.r.choice([(2,), (3,), (2, 2), (3, 1), (0,)])
        pool = self.r.choice([INTEGERS, FLOATS[:7], [True, False], TEXTS, [1, 2.5, 1j], [1, None, "a"]])
        make = lambda dims: [make(dims[1:]) for _ in range(dims[0])] if dims else self.r.choice(pool)
        out = make(shape)
        if self.chance(0.15):
            out.append([1])  # ragged
        return tuple(out) if self.chance(0.2) else out

    def array(self, shape: tuple | None = None, dtype: str | None = None) -> Any:
        np = self.np
        if self.made and dtype is None and self.chance(0.2):  # one that is there, or a view of it
            a = self.r.choice(self.made)
            view = self.r.choice([lambda a: a, lambda a: a[::-1], lambda a: a.T, lambda a: a[...], lambda a: a[1:]])
            return view(a) if a.ndim else a
        if shape is None:
            shape = self.shape if self.chance(0.6) else self.r.choice(SHAPES)
        if dtype is None:
            dtype = self.dtype_ if self.chance(0.6) else self.r.choice(COMMON if self.chance(0.7) else self.rare)
        dtype = numpy.dtype(dtype) if dtype != "T" else numpy.dtypes.StringDType()
        n = 1
        for d in shape:
            n *= d
        kind = "V" if dtype.names else dtype.kind
        pool = ARRAYS_OF[kind]
        if kind in "iufc" and (self.sizing or self.chance(0.4)):
            pool = [0, 1, 2, 3, 4]
        values = [(self.r.choice(INTEGERS[:4]), 1.5) if dtype.names else self.r.choice(pool) for _ in range(n)]
        a = np.zeros(n, dtype)
        for i, v in enumerate(values):
            a[i] = v
        a = a.reshape(shape)
        layout = self.r.random()
        if layout < 0.1:
            a = a.copy(order="F")
        elif layout < 0.16:
            a = a[::-1] if a.ndim else a
        elif layout < 0.22 and a.ndim:
            a = np.repeat(a, 2, axis=-1)[..., ::2]
        elif layout < 0.27:
            a = np.broadcast_to(a[:1] if a.ndim and len(a) else a, shape)
        elif layout < 0.31:
            a.setflags(write=False)
        elif layout < 0.35 and kind in "biufcmM" and n:
            flat = np.zeros(a.nbytes + 1, "u1")[1:].view(dtype)
            flat[:] = a.reshape(-1)
            a = flat.reshape(shape)
        elif layout < 0.4:
            a = a.T
        elif layout < 0.43 and kind in "iufcU":
            a = a.astype(dtype.newbyteorder())
        self.made.append(a)
        return a

    def operand(self) -> Any:
        kind = self.r.random()
        if kind < 0.76:
            return self.array()
        if kind < 0.9:
            return self.scalar()
        if kind < 0.96:
            return self.nested()
        if kind < 0.965:
            a = self.array(dtype=self.r.choice(["f8", "i8", "O", "c16"]))
            return self.np.ma.array(a, mask=[self.chance(0.3) for _ in range(a.size)] if a.ndim == 1 else False)
        if kind < 0.98:
            return [self.array() for _ in range(self.r.randrange(4))]
        return self.r.choice([lambda: iter([1, 2]), lambda: range(3), lambda: {1, 2}, lambda: (x for x in [1.0])])()

    def dtype(self) -> Any:
        if self.chance(0.8):
            name = self.r.choice(COMMON if self.chance(0.8) else RARE)
            if name == "T":
                return numpy.dtypes.StringDType()
            return name if self.chance(0.5) else numpy.dtype(name)
        return self.r.choice([None, float, int, bool, complex, str, object, numpy.float32, "x", 3, numpy.int64, "O"])

    def axis(self) -> Any:
        kind = self.r.random()
        if kind < 0.6:
            return self.r.choice([0, 1, -1, 2, -2, 0, -1])
        if kind < 0.72:
            return self.r.choice([None, (0, 1), (0,), (), (1, 0), (0, 0), [0], (-1,), (0, -1), [0, 1]])
        if kind < 0.8:
            return self.np.array(self.r.choice([0, 1, -1]))  # a 0-d array
        if kind < 0.9:
            return self.r.choice([numpy.int64(0), numpy.uint8(1), True, 5, -7, 10**20, 2**31])
        return self.scalar()

    def size(self) -> Any:
        if self.chance(0.4):
            return self.r.choice([0, 1, 2, 3, 5, -1])
        if self.chance(0.7):
            return self.r.choice([*SHAPES, (-1,), (-1, 2), (12,), (4, -1), [3, 4], (6, 2), (2.0,), (numpy.int64(3),)])
        return self.integer() if self.chance(0.6) else self.np.array([self.r.choice([1, 2, 3])])

    def named(self, name: str, default: Any = inspect.Parameter.empty) -> Any:
        """An argument as the name says, mostly."""
        name = name.strip("_")
        if (
            name != "mode" and not (name == "out" and self.accumulates) and self.chance(0.04)
        ):  # a number for a mode leaves an exception behind in NumPy's put
            return self.operand()
        if name in WORDS and (name != "bins" or self.chance(0.8)):
            return self.r.choice(WORDS[name])
        if name in ("axis", "axes", "axis1", "axis2", "source", "destination", "axisa", "axisb", "axisc"):
            return self.axis()
        if name in ("dtype", "dtypes", "from", "to", "arg1", "type1", "type2", "otypes", "typechars"):
            return self.dtype()
        if name == "out":
            if self.accumulates:
                return self.array(self.shape or (3,), self.dtype_)
            return self.array() if self.chance(0.85) else self.r.choice([None, (), [1.0], 3, Ellipsis])
        if name in ("where", "condition", "mask", "condlist", "extract"):
            if self.chance(0.2):
                return self.r.choice([True, False, None, 1])
            return self.array(None if self.chance(0.3) else self.shape, "?" if self.chance(0.85) else None)
        if name in (
            "shape",
            "newshape",
            "size",
            "new_shape",
            "reps",
            "repeats",
            "pad_width",
            "s",
            "dims",
            "window_shape",
        ):
            return self.size()
        if name in ("indices", "ind", "kth", "indices_or_sections", "obj", "shift", "sections", "sorter"):
            if self.chance(0.5):
                return self.r.choice(
                    [0, 1, 2, -1, [0, 1], [2, 0], [-1], [0, 0, 1], 5, [], slice(1, None), [True, False]]
                )
            return self.array(
                self.r.choice([(2,), (), (3,), (0,), (2, 2)]), self.r.choice(["i8", "i4", "?", "u1", "f8"])
            )
        if name in ("func", "func1d", "function", "pyfunc", "func2d"):
            return self.r.choice([len, max, abs, THING, repr, sum, operator.neg, None])
        if name in ("tup", "arrays", "arys", "seq", "choicelist", "choices", "keys", "funclist", "list", "arrays_list"):
            if self.chance(0.1):
                return self.operand()
            dtype = self.dtype_ if self.chance(0.5) else None
            group = [self.array(self.shape if self.chance(0.8) else None, dtype) for _ in range(self.r.randrange(1, 4))]
            return tuple(group) if self.chance(0.3) else group
        if isinstance(default, bool) or name in (
            "keepdims",
            "copy",
            "subok",
            "write",
            "align",
            "uic",
            "inplace",
            "endpoint",
        ):
            return self.r.choice([True, False]) if self.chance(0.85) else self.scalar()
        if name in (
            "n",
            "N",
            "M",
            "m",
            "k",
            "num",
            "deg",
            "ndmin",
            "minlength",
            "offset",
            "count",
            "decimals",
            "width",
        ):
            return self.integer() if self.chance(0.8) else self.scalar()
        if name == "memo":
            return Memo()
        if type(default) in (int, float):
            return self.integer() if self.chance(0.6) else self.scalar()
        return self.operand()

    # -------------------------------------------------------------- calls
    def call(self) -> tuple[str, Callable, list, dict]:
        """(name, function, args, kwargs) of this seed's call."""
        family = self.r.choices(list(TARGETS), [w for w, _ in TARGETS.values()])[0]
        name = self.r.choice(TARGETS[family][1])
        if NUMPY_2 and family in ("operator", "char", "strings"):  # elsewhere they crash NumPy 2.4
            self.rare = [*RARE, "T", "T", "T"]
        self.sizing = family == "linalg" or bool(SIZING.search(name))  # LAPACK may never end with infinities
        self.accumulates = bool(re.search("cumsum|cumprod|accumulate", name))  # an `out` without axes crashes NumPy 2.4
        make = {
            "ufunc": self.ufunc,
            "ufunc method": self.ufunc_method,
            "method": self.method,
            "attribute": self.attribute,
            "operator": self.operator,
            "random": self.draw,
        }.get(family, self.function)
        return make(name)

    def arguments(self, parameters: list) -> tuple[list, dict]:
        args, kwargs = [], {}
        positional = True
        for p in parameters:
            if p.kind is p.VAR_KEYWORD or p.name in ("like", "device"):
                positional = False
                continue
            if p.kind is p.VAR_POSITIONAL:
                args += [self.named(p.name) for _ in range(self.r.randrange(4))] if positional else []
                continue
            needed = p.default is p.empty
            if not self.chance(0.98 if needed else 0.25):
                positional = positional and False
                continue
            by_position = p.kind is p.POSITIONAL_ONLY or (p.kind is not p.KEYWORD_ONLY and (needed or self.chance(0.4)))
            value = self.named(p.name, p.default)
            if positional and by_position:
                args.append(value)
            elif p.kind is not p.POSITIONAL_ONLY:
                positional = False
                kwargs[p.name] = value
        if self.chance(0.01):
            kwargs["wrong"] = 1
        return args, kwargs

    def function(self, name: str) -> tuple:
        parameters = _parameters(name)
        args, kwargs = self.arguments(parameters)
        return name, operator.attrgetter(name)(self.np), args, kwargs

    def ufunc(self, name: str) -> tuple:
        u = getattr(numpy, name)
        args = [self.operand() for _ in range(u.nin)]
        if name in ("gcd", "lcm"):  # Python's, of objects, never ends for NaN
            args = [self.array(dtype=self.r.choice(["i8", "u1", "i4", ">i4"])) for _ in args]
        if self.chance(0.02):
            args.pop()
        kwargs = {}
        if self.chance(0.15):
            kwargs["out"] = self.named("out") if self.chance(0.7) else tuple(self.named("out") for _ in range(u.nout))
        elif self.chance(0.06):
            args += [self.named("out") for _ in range(u.nout)]
        if self.chance(0.12):
            kwargs["where"] = self.named("where")
            if (
                not isinstance(kwargs.get("out"), (self.np.ndarray, type(None))) or "out" not in kwargs
            ):  # else some of the result is whatever lies there
                kwargs["out"] = self.array()
        for key, p in {
            "dtype": 0.1,
            "casting": 0.06,
            "order": 0.05,
            "subok": 0.02,
            "keepdims": 0.02,
            "axis": 0.02,
        }.items():
            if self.chance(p):
                kwargs[key] = self.named(key, True)
        return name, getattr(self.np, name), args, kwargs

    def ufunc_method(self, name: str) -> tuple:
        method = name.rpartition(".")[2]
        texts = {
            "reduce": "array axis= dtype= out= keepdims= initial= where=",
            "accumulate": "array axis= dtype= out=",
            "reduceat": "array indices axis= dtype= out=",
            "outer": "a b",
            "at": "a indices b",
        }
        parameters = _written(texts[method])
        if method == "at" and getattr(numpy, name.partition(".")[0]).nin == 1:
            parameters.pop()
        args, kwargs = self.arguments(parameters)
        if "where" in kwargs:
            kwargs.setdefault("initial", self.scalar())
        return name, operator.attrgetter(name)(self.np), args, kwargs

    def method(self, name: str) -> tuple:
        a = self.array()
        parameters = _parameters(f"ndarray.{name}")
        args, kwargs = self.arguments(parameters)
        if name == "resize":  # else it depends on who else knows the array
            kwargs["refcheck"] = False
        return f"ndarray.{name}", getattr(self.np.ndarray, name), [a, *args], kwargs

    def attribute(self, name: str) -> tuple:
        a = self.array()
        if self.chance(0.6):
            return f"ndarray.{name}", lambda a: getattr(a, name), [a], {}
        words = {"shape": self.size, "dtype": self.dtype, "strides": self.size}
        value = words.get(name, self.operand)()
        if name == "strides":  # not into memory that is somebody else's
            a = self.array(dtype="i8")
            value = tuple(s // 2 for s in a.strides)
        return f"ndarray.{name} = ", lambda a, v: setattr(a, name, v), [a, value], {}

    def index(self) -> Any:
        kind = self.r.random()
        if kind < 0.3:
            return self.r.choice(
                [0, -1, 1, 3, slice(1, None), slice(None, None, -1), ..., None, (), slice(0, 9, 2), True]
            )
        if kind < 0.5:
            parts = [0, -1, 1, slice(None), slice(1, None), ..., None, slice(None, None, -2), [0, 1], True, [], 2]
            return tuple(self.r.choice(parts) for _ in range(self.r.randrange(1, 4)))
        if kind < 0.7:
            return self.named("indices")
        if kind < 0.85:
            return self.array(self.shape if self.chance(0.7) else None, "?")
        return self.operand() if self.chance(0.7) else (self.operand(), self.operand())

    def operator(self, name: str) -> tuple:
        a = self.array()
        unary = {"len": len, "bool": bool, "int": int, "float": float, "complex": complex, "repr": repr, "str": str}
        unary |= {"list": list, "iter": iter, "hash": hash, "bytes": bytes, "sum": sum, "max": max, "min": min}
        unary |= {"sorted": sorted, "reversed": reversed, "tuple": tuple, "enumerate": lambda a: list(enumerate(a))}
        unary |= {"abs": abs, "memoryview": lambda a: memoryview(a).shape, "zip": lambda a: list(zip(a, a))}
        unary |= {n: getattr(operator, n) for n in ("neg", "pos", "invert", "index", "truth", "not_")}
        if name in unary:
            return f"{name}()", unary[name], [a], {}
        if name == "round":
            return "round()", round, [a, *([self.integer()] if self.chance(0.5) else [])], {}
        if name == "format":
            return "format()", format, [a, self.r.choice(["", ".2f", "d", "x"])], {}
        if name == "isinstance":
            return "isinstance()", lambda x: isinstance(x, self.np.ndarray), [self.operand()], {}
        if name == "pow3":
            return "pow()", pow, [a, self.operand(), self.operand()], {}
        if name in ("getitem", "delitem"):
            return name, getattr(operator, name), [a, self.index()], {}
        if name == "setitem":
            return name, operator.setitem, [a, self.index(), self.operand()], {}
        other = self.operand()
        pair = [other, a] if self.chance(0.3) and name[0] != "i" and name != "contains" else [a, other]
        return name, divmod if name == "divmod" else getattr(operator, name), pair, {}

    def draw(self, name: str) -> tuple:
        generator = self.np.random.Generator(self.np.random.PCG64(7))
        args, kwargs = self.arguments(_parameters(f"random.Generator.{name}"))
        if name == "zipf":  # a number of the array may take NumPy for ever
            args = [self.r.choice([1.5, 2, 3.0, 0.5, "a", None, [2.5, 4.0]]), *args[1:]]
        return f"Generator.{name}", getattr(generator, name), args, kwargs


def _written(text: str) -> list:
    p = inspect.Parameter
    return [
        p(f"{w.rstrip('=')}{i * '_' if text.split().count(w) > 1 else ''}", p.POSITIONAL_OR_KEYWORD, default=None)
        if w.endswith("=")
        else p(f"{w}{i * '_' if text.split().count(w) > 1 else ''}", p.POSITIONAL_ONLY)
        for i, w in enumerate(text.split())
    ]


@functools.cache
def _parameters(name: str) -> list:
    """The parameters of NumPy's function or method; without `self`."""
    last = name.rpartition(".")[2]
    if last in PARAMETERS and (name == last or name.startswith("ndarray.") or last == "integers"):
        return _written(PARAMETERS[last])
    try:
        found = list(inspect.signature(operator.attrgetter(name)(numpy)).parameters.values())
    except (ValueError, TypeError):
        if last.startswith("__") and name.startswith("ndarray."):
            return _written("other")
        return _written("a b=" if not name.startswith("random.") else "low= high= size=")
    return found[1:] if name.startswith(("ndarray.", "random.Generator.")) else found


# ------------------------------------------------------------------ what came out
def _bits(a: numpy.ndarray) -> Any:
    """What an array holds: bits, but for those of NaNs and of padding."""
    if a.size > 100_000:
        return "large"
    if a.dtype.kind in "fc" and a.dtype.char not in "gG":
        a = numpy.where(numpy.isnan(a), numpy.array(numpy.nan, a.dtype), a)
        return a.tobytes()
    return a.tobytes() if a.dtype.kind in "biuSUMm" else repr(list(a.flat))


def _host(x: Any) -> Any:
    return x._host if type(x) is np.ndarray else x


def _facts(x: Any, ours: bool, args: list, depth: int = 0) -> Any:
    """What must be the same of a result."""
    array = np.ndarray if ours else numpy.ndarray
    if type(x) is array or (isinstance(x, numpy.ndarray) and type(x) is not numpy.ndarray):
        kind = "array" if type(x) is array else type(x).__name__
        shown = [i for i, a in enumerate(args) if isinstance(_host(a), numpy.ndarray) and _overlap(x, a)]
        if x.dtype == object:
            content = [_facts(e, ours, [], depth + 1) for e in list(x.flat)] if depth < 3 else "deep"
        else:
            content = _bits(numpy.asarray(_host(x)))
        return kind, repr(x.dtype), x.shape, x.strides, x.flags.writeable, shown, content
    if type(x) is numpy.ndarray:
        return "an array of NumPy's, which is not ours", repr(x.dtype), x.shape
    if isinstance(x, numpy.generic):
        return "scalar", type(x).__name__, repr(x.dtype), _bits(numpy.asarray(x))
    if type(x) in (list, tuple) or (isinstance(x, tuple) and hasattr(x, "_fields")):
        return type(x).__name__, [_facts(e, ours, args, depth + 1) for e in x] if depth < 12 else "deep"
    if type(x) is dict:
        return "dict", {k: _facts(e, ours, args, depth + 1) for k, e in x.items()}
    if isinstance(x, (int, float, complex, str, bytes, numpy.dtype)) or x is None or x is NotImplemented:
        return type(x).__name__, repr(x)
    return ("iterator" if hasattr(x, "__next__") else type(x).__name__,)


def _overlap(a: Any, b: Any) -> bool:
    return bool(numpy.may_share_memory(_host(a), _host(b)))


def outcome(seed: int, ours: bool) -> tuple[str, dict]:
    """(the call in words, its facts) of a seed in one library."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        name, function, args, kwargs = Wild(seed, np if ours else numpy, ours).call()
        shown = [*args, *kwargs.values()]
        text = f"{name}({', '.join([*map(_short, args), *(f'{k}={_short(v)}' for k, v in kwargs.items())])})"
        said.clear()
        facts: dict = {}
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            facts["result"] = ("raised", type(error).__name__)
            facts["message"] = str(error)[:90]
        else:
            facts["result"] = _facts(result, ours, shown)
        facts["warnings"] = sorted({w.category.__name__ for w in said})
        facts["arguments"] = [_facts(a, ours, []) for a in shown]
    return text, facts


def _short(x: Any) -> str:
    if isinstance(_host(x), numpy.ndarray):
        order = "" if x.flags.c_contiguous else " strided"
        return f"{x.dtype}{list(x.shape)}{order}{'' if x.flags.writeable else ' read-only'}"
    if type(x) in (list, tuple):
        return f"{type(x).__name__}({', '.join(map(_short, x))})"
    return re.sub(r" at 0x\w+", "", repr(x))[:40]


def difference(seed: int) -> str | None:
    """What differs at a seed, in words; None where nothing does, or what does is among those that stay."""
    text, got = outcome(seed, True)
    _, want = outcome(seed, False)
    for what in ("result", "warnings", "arguments"):
        if got[what] != want[what]:
            words = f"{what}: {_told(got, what)} instead of {_told(want, what)}"
            if not any(re.search(call, text) and re.search(which, words) for call, which, _ in STAYING):
                return f"{seed} {text}\n    {words}"
    return None


def _told(facts: dict, what: str) -> str:
    return f"{str(facts[what])[:300]} {facts.get('message', '') if what == 'result' else ''}"


@pytest.mark.host("bits, strides and exceptions are NumPy's")
@pytest.mark.either("every public function")
@pytest.mark.parametrize("part", range(10))
def test_wild_arguments_do_what_they_do_in_numpy(part):
    found = [d for seed in range(part * CALLS // 10, (part + 1) * CALLS // 10) if (d := difference(seed)) is not None]
    assert not found, "\n".join([f"{len(found)} differ", *found[:20]])


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:3])
    for seed in range(first, first + count):
        if (found := difference(seed)) is not None:
            print(found, flush=True)
