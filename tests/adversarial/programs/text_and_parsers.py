"""Text and parsers: tokenizers, little languages and strings that drive array work."""

import ast
import re
import struct

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.normal(size=5), r.normal(size=5)))
def calculator_by_recursive_descent(x, y):
    tokens = re.findall(r"[a-z]+|[\d.]+|[-+*/()^]", "2*x^2 - (y + 0.5)*sin(x) / (1 + y^2) - -x")
    names = {"x": x, "y": y}
    at = 0

    def take():
        nonlocal at
        at += 1
        return tokens[at - 1]

    def peek():
        return tokens[at] if at < len(tokens) else None

    def atom():
        t = take()
        if t == "(":
            v = total()
            assert take() == ")"
            return v
        if t == "-":
            return -atom()
        if t.isalpha() and peek() == "(":
            return getattr(np, t)(atom())
        return names[t] if t in names else float(t)

    def power():
        v = atom()
        while peek() == "^":
            take()
            v = v ** atom()
        return v

    def product():
        v = power()
        while peek() in ("*", "/"):
            v = v * power() if take() == "*" else v / power()
        return v

    def total():
        v = product()
        while peek() in ("+", "-"):
            v = v + product() if take() == "+" else v - product()
        return v

    return total()


@program(lambda r: (r.normal(size=(3, 3)), r.normal(size=3)))
def stack_language(a, v):
    stack = []
    words = {
        "a": lambda: stack.append(a),
        "v": lambda: stack.append(v),
        "dup": lambda: stack.append(stack[-1]),
        "swap": lambda: stack.insert(-1, stack.pop()),
        "mul": lambda: stack.append(stack.pop() @ stack.pop()),
        "t": lambda: stack.append(stack.pop().T),
        "+=": lambda: stack[-2].__iadd__(stack.pop()),
        "tanh": lambda: stack.append(np.tanh(stack.pop())),
    }
    for word in ["a", "dup", "t", "swap", "mul", "tanh", "v", "swap", "mul", "v", "+="]:
        words[word]()
    return stack[-1], v


@program(lambda r: (r.normal(size=4), r.normal(size=4)))
def expression_tree_walk(x, y):
    env = {"x": x, "y": y}
    table = {ast.Add: np.add, ast.Mult: np.multiply, ast.Sub: np.subtract, ast.Pow: np.power}

    def walk(node):
        match node:
            case ast.BinOp(left, op, right):
                return table[type(op)](walk(left), walk(right))
            case ast.Name(name):
                return env[name]
            case ast.Constant(value):
                return value
            case ast.Subscript(value, index):
                return walk(value)[walk(index)]
            case ast.UnaryOp():
                return -walk(node.operand)
            case ast.Call(f, args):
                return getattr(np, f.id)(*map(walk, args))
        raise SyntaxError(ast.dump(node))

    return walk(ast.parse("exp(-x * y) + x[1] ** 2 * tanh(y - 3) - dot(x, y)", mode="eval").body)


@program(lambda r: (r.normal(size=(6, 3)),))
def words_embedded_and_averaged(table):
    text = "the cat sat on the mat the cat"
    vocabulary = {}
    ids = np.array([vocabulary.setdefault(w, len(vocabulary)) for w in text.split()])
    e = table[ids]
    counts = np.bincount(ids, minlength=6)
    table[ids] *= 0.5
    return e.mean(0), (counts[:, None] * table).sum(axis=0), e[::-1].cumsum(0)[-1], sorted(vocabulary)[0]


@program(lambda r: (r.normal(size=8),))
def moves_read_from_a_string(x):
    heading, pos = 1 + 0j, 0j
    path = []
    for count, move in re.findall(r"(\d)([LRF])", "2F1L3F2R1F1L2F1R1F"):
        for _ in range(int(count)):
            if move == "F":
                pos += heading * (1 + x[len(path) % 8] ** 2)
                path.append(pos)
            else:
                heading *= 1j if move == "L" else -1j
    z = np.array(path)
    return np.abs(z), z.real.max() - z.imag.min()


@program(lambda r: (r.normal(size=(2, 3)), r.normal(size=(3, 4))))
def einsum_by_a_loop_parser(a, b):
    def einsum(spec, *ops):
        left, right = spec.split("->")
        sizes = {c: n for term, op in zip(left.split(","), ops) for c, n in zip(term, op.shape)}
        letters = right + "".join(c for c in sizes if c not in right)
        total = 1.0
        for term, op in zip(left.split(","), ops):
            order = sorted(range(len(term)), key=lambda k: letters.index(term[k]))
            shape = [sizes[c] if c in term else 1 for c in letters]
            total = total * op.transpose(order).reshape(shape)
        return total.sum(axis=tuple(range(len(right), len(letters))))

    c = einsum("ij,jk->ki", a, b)
    return c - np.einsum("ij,jk->ki", a, b), c


@program(lambda r: (r.normal(size=3),))
def numbers_printed_and_read_back(x):
    text = ";".join(f"{v:.17g}" for v in x)
    back = np.array([float(t) for t in text.split(";")])
    k = np.fromstring("1 2 3", sep=" ") if hasattr(np, "fromstring") else np.arange(1, 4.0)
    return (back == x).all(), x * k, len(text.split(";"))


@program(lambda r: (r.integers(97, 123, 12),), order=0, nums=False)
def letters_counted_and_shifted(codes):
    text = "".join(map(chr, codes))
    shifted = np.array([(ord(c) - 97 + 13) % 26 + 97 for c in text])
    upper = np.char.upper(np.array(list(text)))
    values, counts = np.unique(codes, return_counts=True)
    runs = np.flatnonzero(np.diff(np.concatenate([[-1], codes, [-1]])))
    return shifted, (upper >= "N").sum(), counts.max(), values[counts.argmax()], np.diff(runs).max()


@program(lambda r: (r.integers(0, 9, 10),), order=0, nums=False)
def names_in_arrays_of_strings(k):
    names = np.array(["ann", "bob", "cy", "dee", "eve", "flo", "gus", "hal", "ida"])
    picked = names[k]
    length = np.char.str_len(picked)
    return length, picked == "cy", np.char.find(picked, "e"), np.isin(picked, names[:3])


@program(lambda r: (r.normal(size=6),))
def table_with_a_header(x):
    lines = ["name,scale,shift", "a,2,0.5", "b,-1,3", "", "# note", "c,0.5,-2"]
    header, *rows = [line.split(",") for line in lines if line and not line.startswith("#")]
    records = [dict(zip(header, row)) for row in rows]
    out = {}
    for record, part in zip(records, np.split(x, 3)):
        part *= float(record["scale"])
        part += float(record["shift"])
        out[record["name"]] = part.sum()
    return x, [out[k] for k in sorted(out, reverse=True)]


@program(lambda r: (r.normal(size=4),))
def format_of_the_result_chosen_by_text(x):
    out = []
    for command in ("sum axis=0", "power n=3", "clip lo=-0.5 hi=0.5", "roll by=1"):
        name, *options = command.split()
        o = {k: float(v) for k, v in (option.split("=") for option in options)}
        if name == "sum":
            out.append(x.sum(axis=int(o["axis"])))
        elif name == "power":
            out.append(x ** int(o["n"]))
        elif name == "clip":
            out.append(np.clip(x, o["lo"], o["hi"]))
        else:
            out.append(np.roll(x, int(o["by"])))
    return out


@program(lambda r: (r.integers(0, 3, 14),), order=0, nums=False)
def run_lengths_and_bytes(x):
    edge = np.flatnonzero(np.r_[True, x[1:] != x[:-1]])
    lengths = np.diff(np.r_[edge, len(x)])
    assert np.array_equal(np.repeat(x[edge], lengths), x)
    packed = struct.pack(f"<{len(lengths)}H", *lengths.tolist())
    back = np.frombuffer(packed, dtype="<u2")
    return lengths.sum(), back.max(), x.astype(np.uint8).tobytes().count(b"\x01"), back.astype(int).sum()
