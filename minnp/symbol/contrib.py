"""Control flow: foreach, while_loop and cond, whose bodies are Python functions of symbols; and _contrib_ operators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from . import naming
from .operator import OPERATORS, lookup
from .symbol import Group, Node, Symbol, Variable, function, ordered

_MARK = "__subgraph_name__"
_COUNT = itertools.count()


def __getattr__(name: str) -> Any:
    if f"_contrib_{name}" not in OPERATORS:
        raise AttributeError(f"minnp.symbol has no operator _contrib_{name}")
    return function(f"_contrib_{name}", called=name)


def rand_zipfian(true_classes: Symbol, num_sampled: int, range_max: int) -> tuple[Symbol, Symbol, Symbol]:
    """(Classes drawn from 0 to range_max - 1, how often the true ones, and those drawn, are expected to be drawn).

    Class k has the probability log((k + 2) / (k + 1)) / log(range_max + 1): the first are the most frequent.
    """
    whole = math.log(range_max + 1)
    uniform = function("_random_uniform")(low=0, high=whole, shape=(num_sampled,), dtype="float64")
    drawn = (uniform.exp() - 1).astype("int64") % range_max

    def expected(classes: Symbol) -> Symbol:
        classes = classes.astype("float64")
        return ((classes + 2.0) / (classes + 1.0)).log() / whole * num_sampled

    return drawn, expected(true_classes), expected(drawn)


def _listed(symbols: Any, what: str) -> tuple[list[Symbol], bool]:
    """(a list of symbols, whether it was one alone)."""
    alone = isinstance(symbols, Symbol)
    found = [symbols] if alone else list(symbols) if isinstance(symbols, (list, tuple, Symbol)) else [symbols]
    if not all(isinstance(s, Symbol) for s in found):
        raise TypeError(f"{what} are symbols, or lists of them; got {symbols!r:.60}")
    return found, alone


class Body:
    """What a Python function of symbols makes, as a symbol of its own.

    symbol    its results, of variables alone
    inputs    name of a variable -> the result outside that it stands for
    """

    def __init__(self, run: Callable, *given: Sequence[Symbol]) -> None:
        mark = f"body{next(_COUNT)}"
        with naming.AttrScope(**{_MARK: mark}):
            self.variables = [[Variable(f"{mark}_{k}_{i}") for i in range(len(g))] for k, g in enumerate(given)]
            self.made = run(*self.variables)
            results, _ = _listed(self.made, "the results of a body")
            inner = [function("_copy")(s) if s._heads[0][0].operator is None else s for s in results]
        own = {id(v._heads[0][0]) for group in self.variables for v in group}
        self.symbol, self.inputs = _cut(Group(inner), mark, own) if inner else (None, {})

    def places(self, position: dict[str, int]) -> list[int]:
        """By variable of the body, the number of the input that it stands for."""
        return [position[name] for name in self.symbol.list_inputs()]


def _cut(symbol: Symbol, mark: str, own: set[int]) -> tuple[Symbol, dict[str, tuple[Node, int]]]:
    """(the symbol, in which what was made outside is variables; name -> what they stand for)."""
    outside: dict[str, tuple[Node, int]] = {}
    made: dict[tuple[int, int], tuple[Node, int]] = {}
    copies: dict[int, Node] = {}

    def entry(node: Node, i: int) -> tuple[Node, int]:
        inside = node.attributes.get(_MARK) == mark
        if inside and node.operator is not None:
            return copies[id(node)], i
        if id(node) in own:
            return node, i
        if (id(node), i) not in made:
            name = node.result(i)
            made[id(node), i] = Node(None, name, dict(node.attributes) if node.operator is None else {}), 0
            outside[name] = node, i
        return made[id(node), i]

    for node in ordered(symbol._heads):
        if node.operator is not None and node.attributes.get(_MARK) == mark:
            inputs = [entry(*e) for e in node.inputs]
            copies[id(node)] = Node(node.operator, node.name, dict(node.attributes), inputs, node.subgraphs)
    return Symbol([entry(*e) for e in symbol._heads]), outside


def _call(op: str, name: str | None, entries: list, bodies: list[Symbol], **parameters: Any) -> list[Symbol]:
    """The results of an operator with bodies."""
    texts = {n: str(v) for n, v in parameters.items()}
    name = naming.LOCAL.names[-1].get(name, op)
    row = lookup(op)
    node = Node(row, name, naming.attributes(None) | texts, entries, bodies)
    return [Symbol([(node, i)]) for i in range(len(node.outputs))]


def _gathered(groups: Sequence[Sequence[Symbol]], bodies: Sequence[Body]) -> tuple[list, dict]:
    """(inputs of a node: those given, then what bodies read besides; name of a body's variable -> its place)."""
    entries = [s._heads[0] for group in groups for s in group]
    position: dict[str, int] = {}
    for body in bodies:
        position |= {v.name: i for i, v in enumerate(v for group in body.variables for v in group)}
    for body in bodies:
        for name, e in body.inputs.items():
            if name not in position:
                position[name] = len(entries)
                entries.append(e)
    return entries, position


def foreach(body: Callable, data: Any, init_states: Any, name: str | None = None) -> tuple[Any, Any]:
    """(results of every step side by side, the last states) of body(data[i], states) -> (results, new states).

    data, init_states   symbols, or lists of them; the body gets and gives the same

    Raises ValueError where the body leaves some of data or of the states unread.

    >>> total = lambda x, state: (x + state, x + state)
    >>> sums, last = sym.contrib.foreach(total, sym.Variable("x"), sym.Variable("start"))
    >>> sorted(sums.list_arguments())
    ['start', 'x']
    """
    (data, one), (states, single) = _listed(data, "data"), _listed(init_states, "states")
    shape: dict[str, Any] = {}

    def run(x: list, s: list) -> list:
        results, after = body(x[0] if one else x, s[0] if single else s)
        (results, alone), (after, _) = _listed(results, "results"), _listed(after, "states")
        shape.update(count=len(results), alone=alone)
        return [*results, *after]

    made = Body(run, data, states)
    entries, names = _gathered((data, states), [made])
    place = made.places(names)
    count, states_at = len(data), len(data) + len(states)
    if unread := set(range(len(entries))) - set(place):
        raise ValueError(f"the body of foreach does not read {', '.join(entries[i][0].name for i in sorted(unread))}")
    loc = lambda low, high: [place.index(i) for i in range(low, high)]
    results = _call("_foreach", name, entries, [made.symbol], num_args=len(entries) + 1, num_outputs=len(made.symbol),
                    num_out_data=shape["count"], in_data_locs=loc(0, count), in_state_locs=loc(count, states_at),
                    remain_locs=loc(states_at, len(entries)))  # fmt: skip
    outs, last = results[: shape["count"]], results[shape["count"] :]
    return outs[0] if shape["alone"] else outs, last[0] if single else last


def while_loop(
    cond: Callable, func: Callable, loop_vars: Any, max_iterations: int | None = None, name: str | None = None
) -> tuple[list[Symbol], list[Symbol]]:
    """(results of every step side by side, zeros after the last; the last variables) of a loop.

    cond             cond(*variables) says whether there is another step
    func             func(*variables) -> (results, new variables)
    loop_vars        the first variables, a symbol or a list of them
    max_iterations   the most steps, and the length of the results' first axis

    Raises ValueError without max_iterations, and where func leaves a variable unread or gives another number of them.

    >>> less, step = lambda i: i < 5, lambda i: (i * 2, i + 1)
    >>> results, last = sym.contrib.while_loop(less, step, sym.Variable("i"), max_iterations=10)
    >>> len(results), len(last)
    (1, 1)
    """
    if max_iterations is None:
        raise ValueError("while_loop needs max_iterations: results have their length along the first axis")
    variables, _ = _listed(loop_vars, "loop_vars")
    count = 0

    def run(x: list) -> list:
        nonlocal count
        results, after = func(*x)
        results, after = _listed(results, "results")[0], _listed(after, "variables")[0]
        if len(after) != len(x):
            raise ValueError(f"the body of while_loop gives {len(after)} variables, and has {len(x)}")
        count = len(results)
        return [*results, *after]

    test = Body(lambda x: cond(*x), variables)
    made = Body(run, variables)
    entries, names = _gathered((variables,), [test, made])
    inputs = made.places(names)
    renewed = [inputs.index(i) if i in inputs else -1 for i in range(len(variables))]
    if -1 in renewed:
        raise ValueError(f"the body of while_loop does not read its variable {renewed.index(-1)}")
    options = {"num_args": len(entries) + 2, "num_outputs": len(made.symbol), "num_out_data": count}
    results = _call("_while_loop", name, entries, [test.symbol, made.symbol], **options, max_iterations=max_iterations,
                    cond_input_locs=test.places(names), func_input_locs=inputs, func_var_locs=renewed)  # fmt: skip
    return results[:count], results[count:]


def cond(pred: Symbol, then_func: Callable, else_func: Callable, name: str | None = None) -> Any:
    """The results of then_func() where pred is not 0, else those of else_func().

    Raises ValueError where the two give different numbers of results.

    >>> x = sym.Variable("x")
    >>> sym.contrib.cond(sym.sum(x) > 0, lambda: sym.sqrt(x), lambda: -x).list_arguments()
    ['x']
    """
    test, then, other = Body(lambda: function("_copy")(pred)), Body(then_func), Body(else_func)
    if len(then.symbol) != len(other.symbol):
        raise ValueError(f"one body of cond gives {len(then.symbol)} results, the other {len(other.symbol)}")
    bodies = [test, then, other]
    entries, names = _gathered((), bodies)
    results = _call("_cond", name, entries, [b.symbol for b in bodies], num_args=len(entries) + 3,
                    num_outputs=len(then.symbol), cond_input_locs=test.places(names),
                    then_input_locs=then.places(names), else_input_locs=other.places(names))  # fmt: skip
    return results[0] if isinstance(then.made, Symbol) else results
