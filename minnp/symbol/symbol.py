"""Symbol: results of a graph of MXNet's operators, to be composed, inspected, saved and run."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as onp

from ..errors import SymbolError
from . import naming
from .inference import declared, infer_shapes, infer_types, shapes_in_part
from .json_format import HIDDEN
from .operator import REQUIRED, Operator, Shape, lookup

Entry = tuple["Node", int]


class Node:
    """A variable (operator None) or a call of an operator: its attributes as texts, its inputs as (node, which result).

    subgraphs   the symbols that control flow runs
    """

    __slots__ = ("attributes", "inputs", "name", "operator", "parameters", "subgraphs")

    def __init__(
        self,
        operator: Operator | None,
        name: str,
        attributes: dict[str, str],
        inputs: Sequence[Entry] = (),
        subgraphs: Sequence[Symbol] = (),
    ) -> None:
        self.operator, self.name, self.attributes, self.inputs = operator, name, attributes, list(inputs)
        self.subgraphs = tuple(subgraphs)
        self.parameters = {} if operator is None else operator.read(attributes, f"{operator.name} {name!r}")

    def __repr__(self) -> str:
        return f"<node {self.name}: {self.operator.name if self.operator else 'variable'}>"

    @property
    def arguments(self) -> Sequence[str]:
        """The names of its inputs."""
        return self.operator.arguments(self.parameters, len(self.inputs)) if self.operator else ()

    @property
    def outputs(self) -> Sequence[str]:
        """The names of its results."""
        return self.operator.outputs(self.parameters) if self.operator else ("",)

    @property
    def states(self) -> list[Entry]:
        """Those of its inputs that are auxiliary states."""
        names = self.operator.states(self.parameters) if self.operator else ()
        return [e for e, name in zip(self.inputs, self.arguments) if name in names] if names else []

    @property
    def visible(self) -> int:
        return self.operator.visible(self.parameters) if self.operator else 1

    def result(self, i: int) -> str:
        """The full name of one of its results: conv_output; a variable's is its own."""
        return f"{self.name}_{self.outputs[i]}" if self.operator else self.name


def ordered(heads: Iterable[Entry]) -> list[Node]:
    """The nodes that results need, each after its inputs, in the order in which MXNet lists them."""
    out: list[Node] = []
    seen: set[int] = set()
    for head, _ in heads:
        stack: list[tuple[Node, Iterator[Entry]]] = []
        if id(head) not in seen:
            seen.add(id(head))
            stack.append((head, iter(head.inputs)))
        while stack:
            node, rest = stack[-1]
            for child, _ in rest:
                if id(child) not in seen:
                    seen.add(id(child))
                    stack.append((child, iter(child.inputs)))
                    break
            else:
                out.append(node)
                stack.pop()
    return out


class Symbol:
    """Results of a graph of operators. Made by the functions of minnp.symbol, by operators on others, and by `Group`.

    heads   its results, each a node of the graph and the number of one of its results

        net = sym.FullyConnected(sym.Variable("data"), name="fc", num_hidden=10)
        net.list_arguments()                                  # ['data', 'fc_weight', 'fc_bias']
        net(data=other), net[0], net["fc_output"], net * 2

    `==` and the other comparisons give symbols, so a symbol has no truth value.
    """

    __slots__ = ("__weakref__", "_heads")
    __array_priority__ = 1000.0
    __array_ufunc__ = None  # NumPy's numbers leave operators to us
    if TYPE_CHECKING:  # made from the tables below

        def __neg__(self) -> Symbol: ...
        def __abs__(self) -> Symbol: ...
        def _operate(self, other: Symbol | complex | onp.generic, /) -> Symbol: ...
        def __eq__(self, other: Any, /) -> Symbol: ...  # type: ignore[override]
        def __ne__(self, other: Any, /) -> Symbol: ...  # type: ignore[override]
        def __getattr__(self, name: str) -> Any: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _operate
        __mod__ = __rmod__ = __pow__ = __rpow__ = __gt__ = __ge__ = __lt__ = __le__ = _operate

    def __init__(self, heads: Sequence[Entry]) -> None:
        self._heads = list(heads)

    # -------------------------------------------------------------- results
    def __repr__(self) -> str:
        if self.name is not None:
            return f"<Symbol {self.name}>"
        return f"<Symbol group [{', '.join(n.name for n, _ in self._heads)}]>"

    def __len__(self) -> int:
        return len(self._heads)

    def __iter__(self) -> Iterator[Symbol]:
        return (Symbol([head]) for head in self._heads)

    def __getitem__(self, index: int | str | slice) -> Symbol:
        """One result, by number or name, or a group of some.

        Raises ValueError for a name that no result, or several, have; IndexError for a number out of range.
        """
        if isinstance(index, str):
            found = [i for i, name in enumerate(self.list_outputs()) if name == index]
            if len(found) != 1:
                what = "several results are" if found else "no result is"
                raise ValueError(f"{what} named {index!r}; there are {', '.join(self.list_outputs())}")
            index = found[0]
        if isinstance(index, slice):
            return Symbol(self._heads[index])
        if not isinstance(index, (int, onp.integer)):
            raise TypeError(f"a symbol is indexed by a number, a name or a slice, not {index!r}")
        if not 0 <= index < len(self._heads):
            raise IndexError(f"result {index} of a symbol with {len(self._heads)}")
        return Symbol([self._heads[index]])

    @property
    def name(self) -> str | None:
        """The name of the operator or variable; None for a group of several."""
        nodes = {id(n): n for n, _ in self._heads}
        return next(iter(nodes.values())).name if len(nodes) == 1 else None

    @property
    def nodes(self) -> list[Node]:
        """All nodes that the results need, inputs first."""
        return ordered(self._heads)

    def get_internals(self) -> Symbol:
        """Every result inside, as a group."""
        return Symbol([(n, i) for n in self.nodes for i in range(n.visible)])

    def get_children(self) -> Symbol | None:
        """The inputs of the nodes whose results these are, as a group; None for a variable."""
        inputs = [entry for n in {id(n): n for n, _ in self._heads}.values() for entry in n.inputs]
        return Symbol(inputs) if inputs else None

    # -------------------------------------------------------------- names
    def _variables(self) -> tuple[list[Node], list[Node]]:
        """(those that are arguments, those that are auxiliary states)."""
        nodes = self.nodes
        states = {id(child) for n in nodes for child, _ in n.states}
        variables = [n for n in nodes if n.operator is None]
        return [n for n in variables if id(n) not in states], [n for n in variables if id(n) in states]

    def list_arguments(self) -> list[str]:
        """The names of the inputs and parameters."""
        return [n.name for n in self._variables()[0]]

    def list_auxiliary_states(self) -> list[str]:
        """The names of what training updates by itself: the moving averages of batch normalisation."""
        return [n.name for n in self._variables()[1]]

    def list_inputs(self) -> list[str]:
        """The names of all variables."""
        return [n.name for n in self.nodes if n.operator is None]

    def list_outputs(self) -> list[str]:
        """The names of the results: fc_output."""
        return [n.result(i) for n, i in self._heads]

    # -------------------------------------------------------------- attributes
    def attr(self, key: str) -> str | None:
        """The text of one attribute, or None."""
        return self.list_attr().get(key)

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """The attributes of this symbol's own node; a group has none. Raises ValueError where recursive."""
        if recursive:
            raise ValueError("list_attr(recursive=True) is attr_dict() today")
        return {} if self.name is None else _shown(self._heads[0][0])

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """name -> attributes of every node inside that has some."""
        return {n.name: _shown(n) for n in self.nodes if n.attributes}

    def _set_attr(self, **attributes: str) -> None:
        if self.name is None:
            raise ValueError("a group has no attributes of its own: index it first")
        node = self._heads[0][0]
        for name, value in attributes.items():
            if not isinstance(value, str):
                raise ValueError(f"the attribute {name}={value!r}: attributes are texts")
            node.attributes[naming.hidden(name)] = value

    # -------------------------------------------------------------- composition
    def __call__(self, *args: Symbol, name: str | None = None, **kwargs: Symbol) -> Symbol:
        """The same graph with symbols in the place of variables: net(data=other). This symbol stays as it is.

        name   of the new symbol's node
        Raises TypeError for arguments that are no symbols or come by position, SymbolError for names that no variable
        has, and for symbols of several results.
        """
        if args:
            raise TypeError("a symbol is composed by keyword, net(data=other): variables have names")
        names = self.list_inputs()
        for key, value in kwargs.items():
            if not isinstance(value, Symbol):
                raise TypeError(f"composition with {key}={value!r:.60}: expected a Symbol")
            if key not in names:
                raise SymbolError(f"composition with {key}=: no variable is named so; there are {', '.join(names)}")
            if len(value) != 1:
                raise SymbolError(f"composition with {key}=: a symbol of {len(value)} results; index one of them")
        made: dict[int, Entry | Node] = {}
        replaced = {key: value._heads[0] for key, value in kwargs.items()}

        def entry(node: Node, i: int) -> Entry:
            if node.operator is None and node.name in replaced:
                return replaced[node.name]
            return made[id(node)], i

        nodes = self.nodes
        for node in nodes:
            inputs = [entry(*e) for e in node.inputs]
            made[id(node)] = Node(node.operator, node.name, dict(node.attributes), inputs, node.subgraphs)
        heads = [entry(*e) for e in self._heads]
        if name is not None and self.name is not None and heads[0][0].operator is not None:
            heads[0][0].name = name
        return Symbol(heads)

    def __copy__(self) -> Symbol:
        return self()

    def __deepcopy__(self, memo: Any = None) -> Symbol:
        return self()

    def __reduce__(self) -> tuple:
        from .saving import load_json

        return load_json, (self.tojson(),)

    # -------------------------------------------------------------- shapes and types
    def infer_shape(self, *args: Any, **kwargs: Any) -> tuple:
        """(shapes of the arguments, of the results, of the auxiliary states), from those of some arguments.

        By name, or by position in the order of list_arguments() (None: unknown). (None, None, None) and a warning where
        they do not follow. Raises SymbolError for names that no argument has, and shapes that contradict each other.
        """
        found = self._shapes(args, kwargs)
        unknown = [n for n, s in zip(self.list_arguments(), found[0], strict=True) if not _complete(s)]
        if unknown or not all(map(_complete, (*found[1], *found[2]))):
            warnings.warn(
                f"the shapes of {', '.join(unknown) or 'some results'} do not follow from those given", stacklevel=2
            )
            return None, None, None
        return found

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> tuple:
        """infer_shape, with () for what does not follow, and 0 for sizes of an axis that do not."""
        found = self._shapes(args, kwargs, lambda run, given: shapes_in_part(run, declared(self.nodes) | given))
        return tuple([s if s is not None else () for s in shapes] for shapes in found)

    def _shapes(self, args: Sequence, kwargs: dict, how: Callable = lambda run, given: run(given)) -> tuple:
        given = self._by_name(args, kwargs, "infer_shape")
        for n, s in given.items():
            if not isinstance(s, (tuple, list)):
                raise TypeError(f"infer_shape: the shape {n}={s!r} is no tuple")
        known = {n: tuple(s) for n, s in given.items() if len(s) or self.of_numpy}  # else () is unknown, as to MXNet
        return how(self._all_shapes, known)

    @property
    def of_numpy(self) -> bool:
        """Whether it has operators of mx.np, so that shapes mean what they do in NumPy: MXNet's `is_np_shape`."""
        return any(n.operator is not None and n.operator.name.startswith("_np") for n in self.nodes)

    def _all_shapes(self, given: dict[str, Shape]) -> tuple[list, list, list]:
        """(shapes of the arguments, of the results, of the auxiliary states), None where they do not follow."""
        arguments, states = self._variables()
        shapes = infer_shapes(self.nodes, given)
        lists = ([(n, 0) for n in arguments], self._heads, [(n, 0) for n in states])
        return tuple([shapes[id(n)][i] for n, i in entries] for entries in lists)

    def infer_type(self, *args: Any, **kwargs: Any) -> tuple:
        """(dtypes of the arguments, of the results, of the auxiliary states), from those of some arguments; as
        infer_shape."""
        found = self._types(args, kwargs)
        if any(t is None for types in found for t in types):
            unknown = [n for n, t in zip(self.list_arguments(), found[0], strict=True) if t is None]
            warnings.warn(f"the types of {', '.join(unknown)} do not follow from those given", stacklevel=2)
            return None, None, None
        return found

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> tuple:
        """infer_type, with None for what does not follow."""
        return self._types(args, kwargs)

    def _types(self, args: Sequence, kwargs: dict) -> tuple[list, list, list]:
        given = {n: onp.dtype(t) for n, t in self._by_name(args, kwargs, "infer_type").items()}
        arguments, states = self._variables()
        types = infer_types(self.nodes, given)
        lists = ([(n, 0) for n in arguments], self._heads, [(n, 0) for n in states])
        of = lambda t: None if t is None else t.type
        return tuple([of(types[id(n)][i]) for n, i in entries] for entries in lists)

    def _by_name(self, args: Sequence, kwargs: dict, what: str) -> dict[str, Any]:
        names = self.list_arguments()
        if args and kwargs:
            raise ValueError(f"{what} takes arguments by position or by keyword, not both")
        if len(args) > len(names):
            raise SymbolError(f"{what} got {len(args)} arguments; there are {', '.join(names)}")
        if unknown := [n for n in kwargs if n not in names and n not in self.list_auxiliary_states()]:
            raise SymbolError(f"{what}: no argument is named {', '.join(unknown)}; there are {', '.join(names)}")
        return {n: v for n, v in (*zip(names, args), *kwargs.items()) if v is not None}

    # -------------------------------------------------------------- files
    def tojson(self) -> str:
        """The graph as JSON, as MXNet 1.9 writes and reads it."""
        from .saving import tojson

        return tojson(self)

    def save(self, fname: str) -> None:
        """Write tojson() to a file."""
        with open(fname, "w", encoding="utf-8") as file:
            file.write(self.tojson())

    def debug_str(self) -> str:
        """The graph, a line for each node."""
        lines = [f"outputs: {', '.join(self.list_outputs())}"]
        for n in self.nodes:
            inputs = ", ".join(child.result(i) for child, i in n.inputs)
            lines.append(f"{n.name} = {n.operator.name if n.operator else 'variable'}({inputs}) {n.attributes or ''}")
        return "\n".join(lines)

    # -------------------------------------------------------------- running
    def bind(self, ctx: Any = None, args: Any = None, args_grad: Any = None, grad_req: Any = "write",
             aux_states: Any = None, group2ctx: Any = None, shared_exec: Any = None) -> Any:  # fmt: skip
        """An Executor of this symbol on given arrays, which it computes with and writes gradients to.

        ctx          where it runs (minnp.cpu(), minnp.gpu()); None: where the arrays are
        args         a list, in the order of list_arguments(), or a dict by name
        args_grad    arrays that gradients are written to: a list (None: no gradient) or a dict of some
        grad_req     "write", "add" or "null" for all, or a list, or a dict by name
        aux_states   as args, of list_auxiliary_states()
        """
        from .executor import bind

        return bind(self, ctx, args, args_grad, grad_req, aux_states)

    def simple_bind(self, ctx: Any = None, grad_req: Any = "write", type_dict: Any = None, stype_dict: Any = None,
                    group2ctx: Any = None, shared_arg_names: Any = None, shared_exec: Any = None,
                    shared_buffer: Any = None, **kwargs: Any) -> Any:  # fmt: skip
        """An Executor on new arrays of zeros: shapes by name of some arguments, the rest is inferred.

        type_dict   dtypes of some arguments; float32 where nothing is said
        """
        from .executor import simple_bind

        return simple_bind(self, ctx, grad_req, type_dict, kwargs)

    def eval(self, ctx: Any = None, **kwargs: Any) -> list:
        """The results, a list of arrays, of given arrays by name."""
        return self.bind(ctx, kwargs, grad_req="null").forward()

    def as_np_ndarray(self) -> Any:
        """The same with NumPy's operators, indexing and methods, as the functions of minnp.symbol.np give symbols."""
        from .namespaces import NumpySymbol

        return NumpySymbol(self._heads)

    def as_nd_ndarray(self) -> Symbol:
        """This symbol."""
        return self

    def optimize_for(self, backend: str, *args: Any, **kwargs: Any) -> Symbol:
        """This symbol: MXNet's backends are no matter here, passes of minnp.fx do what theirs did."""
        return self

    get_backend_symbol = optimize_for

    def __minnp_program__(self) -> Any:
        """What minnp.Function runs."""
        from .executor import Program

        return Program(self)

    def to_graph(self, training: bool = False) -> Any:
        """The graph (minnp.fx) of this symbol: a call of a function of minnp for each operator.

        Its inputs are the variables, in the order of list_inputs(); its result is the symbol's, a tuple where there are
        several. training: layers behave as in training, and states are written where they are arrays to write to.
        """
        from .graphs import to_graph

        return to_graph(self, training)

    def __bool__(self) -> bool:
        raise TypeError("a symbol has no truth value, and comparing two gives a symbol: compare names instead")

    __hash__ = object.__hash__


def _shown(node: Node) -> dict[str, str]:
    """A node's attributes, the hidden ones by both their names."""
    plain = {n.strip("_"): v for n, v in node.attributes.items() if n.strip("_") in HIDDEN}
    return node.attributes | plain


def _complete(shape: Shape | None) -> bool:
    return shape is not None and 0 not in shape


# ------------------------------------------------------------------ making symbols
def Variable(name: str, attr: Any = None, shape: Any = None, lr_mult: Any = None, wd_mult: Any = None,
             dtype: Any = None, init: Any = None, stype: Any = None, profiler_scope: Any = None,
             **kwargs: Any) -> Symbol:  # fmt: skip
    """A named input or parameter, with what MXNet lets one say about it, kept as attributes.

    attr                    a dict of further attributes
    stype, profiler_scope   taken as MXNet takes them; they change no result
    shape, dtype            what infer_shape and infer_type take for it where nothing is said
    lr_mult, wd_mult        for optimisers; init: text, or what has dumps()
    kwargs                  further attributes, their names with two underscores before and after
    Raises TypeError where name is no text, ValueError for other keyword arguments.

    >>> x = sym.Variable("x", shape=(2, 3))
    >>> x.name
    'x'
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a variable is text, not {name!r}")
    attributes = naming.attributes(attr)
    said = {"shape": shape, "lr_mult": lr_mult, "wd_mult": wd_mult, "profiler_scope": profiler_scope}
    attributes |= {f"__{n}__": str(v) for n, v in said.items() if v is not None}
    if dtype is not None:
        attributes["__dtype__"] = str(type_number(dtype))
    if stype is not None:
        attributes["__storage_type__"] = str(STORAGE.index(stype))
    if init is not None:
        attributes["__init__"] = init if isinstance(init, str) else init.dumps()
    for key, value in kwargs.items():
        if not (key.startswith("__") and key.endswith("__")):
            raise ValueError(f"Variable has no argument {key!r}; attributes are written __{key}__")
        attributes[key] = str(value)
    return Symbol([(Node(None, name, attributes), 0)])


var = Variable
STORAGE = ("default", "row_sparse", "csr")
# MXNet's numbers of dtypes
DTYPES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")


def type_number(dtype: Any) -> int:
    """MXNet's number of a dtype. Raises TypeError for one it lacks."""
    name = onp.dtype(dtype).name
    if name not in DTYPES:
        raise TypeError(f"MXNet has no dtype {name}: choose from {', '.join(DTYPES)}")
    return DTYPES.index(name)


def Group(symbols: Iterable[Symbol], create_fn: Any = Symbol) -> Symbol:
    """All results of several symbols, as one. Raises TypeError for what is no symbol, ValueError for none.

    create_fn   what makes the symbol, as MXNet's has it

    >>> x = sym.Variable("x")
    >>> sym.Group([sym.exp(x), sym.sin(x)]).list_arguments()
    ['x']
    """
    symbols = list(symbols)
    if not all(isinstance(s, Symbol) for s in symbols):
        raise TypeError("Group takes a list of symbols")
    if not symbols:
        raise ValueError("Group takes at least one symbol")
    return Symbol([head for s in symbols for head in s._heads])


def text(value: Any) -> str:
    """A parameter's value as MXNet writes it."""
    if isinstance(value, (type, onp.dtype)):
        return onp.dtype(value).name
    if isinstance(value, onp.generic):
        value = value.item()
    if isinstance(value, (list, tuple)):
        inner = [text(v) for v in value]
        return f"({inner[0]},)" if len(inner) == 1 else f"({', '.join(inner)})"
    return str(value)


def create(row: Operator, called: str, args: Sequence, kwargs: dict, name: str | None, attr: Any) -> Symbol:
    """The symbol of a call of an operator: symbols are its inputs, by position or name, all else its parameters.

    Inputs that are not given become variables named after the symbol, fc_weight.
    """
    named = {n: v for n, v in kwargs.items() if isinstance(v, Symbol)}
    given = {n: v for n, v in kwargs.items() if n not in named and (v is not None or n in row.parameters)}
    inputs: list[Any] = list(args)
    if row.variadic:
        if not all(isinstance(a, Symbol) for a in inputs):
            raise TypeError(
                f"{called} takes symbols by position, not {next(a for a in inputs if type(a) is not Symbol)!r}"
            )
    else:
        inputs = []
        order = [*_named_inputs(row), *row.parameters]
        if len(args) > len(order):
            raise TypeError(f"{called} takes {len(order)} arguments by position, got {len(args)}")
        for key, value in zip(order, args):
            if value is None:
                continue
            if key in kwargs:
                raise TypeError(f"{called} got {key!r} by position and by name")
            if isinstance(value, Symbol):
                named[key] = value
            else:
                given[key] = value
    where = f"{called} {name!r}" if name else called
    for key in order[: len(order) - len(row.parameters)] if not row.variadic else ():
        if key in given and key not in row.parameters:
            raise TypeError(
                f"{where}: its input {key!r} is a symbol, got {given[key]!r:.60} ({type(given[key]).__name__})"
            )
    if row.count and row.count not in given:
        given[row.count] = len(inputs) or len(named)
    try:
        row.check(list(given))
    except SymbolError as error:
        raise TypeError(f"{where}: {error}" if name else str(error)) from None
    texts = {n: text(v) for n, v in given.items()}
    parameters = row.read(texts, where)
    for key, value in (*named.items(), *enumerate(inputs)):
        if len(value) != 1:
            raise SymbolError(f"{where}: its input {key} is a symbol of {len(value)} results; index one of them")
    manager = naming.LOCAL.names[-1]
    name = manager.get(name, called.lower())
    attributes = naming.attributes(attr) | texts
    names = row.arguments(parameters, len(inputs) or len(named))
    if row.variadic and not inputs and not set(named) <= set(names):
        entries = [s._heads[0] for s in named.values()]
    else:
        if len(inputs) > len(names):
            raise TypeError(f"{where} takes {len(names)} symbols, {', '.join(names)}; it got {len(inputs)}")
        known = dict(zip(names, inputs)) | named
        if unknown := [n for n in named if n not in names]:
            raise TypeError(f"{where} has no input {', '.join(unknown)}; it has {', '.join(names)}")
        entries = []
        for n in names:
            if n in known:
                entries.append(known[n]._heads[0])
            else:
                entries.append((Node(None, f"{name}_{n}", dict(attributes)), 0))
        for n, (child, _) in zip(names, entries):
            if n in row.initial and child.operator is None:
                child.attributes.setdefault("__init__", row.initial[n])
    node = Node(row, name, attributes, entries)
    return Symbol([(node, i) for i in range(node.visible)])


def _named_inputs(row: Operator) -> Sequence[str]:
    """The inputs that a call may give by position: those of every choice of parameters."""
    if not callable(row._arguments):
        return row._arguments
    return row._arguments(Anything())


class Anything(dict):
    """Parameters for which every optional input is there."""

    def __missing__(self, name: str) -> Any:
        return not name.startswith("no_") and ALL  # no_bias leaves one out


class _All:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True


ALL = _All()


def function(name: str, called: str = "") -> Callable[..., Symbol]:
    """The function of minnp.symbol that makes symbols of an operator; `called`: the name that theirs are made of."""
    row, called = lookup(name), called or name

    def make(*args: Any, name: str | None = None, attr: Any = None, out: Any = None, **kwargs: Any) -> Symbol:
        if out is not None:
            raise TypeError(f"{called}: a symbol has no out=")
        return create(row, called, args, kwargs, name, attr)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"MXNet's operator {row.name}."
    keyword = inspect.Parameter.KEYWORD_ONLY
    if row.variadic:
        first = [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)]
    else:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        first = [inspect.Parameter(n, kind, default=None) for n in _named_inputs(row)]
    options = [
        inspect.Parameter(p.name, keyword, default=keyword and (... if p.default is REQUIRED else p.default))
        for p in row.parameters.values()
        if p.name.isidentifier() and p.name not in {f.name for f in first}
    ]
    last = [inspect.Parameter(n, keyword, default=None) for n in ("name", "attr") if n not in row.parameters]
    make.__signature__ = inspect.Signature([*first, *options, *last])
    return make


# ------------------------------------------------------------------ operators of Python, and methods
def _binary(pair: str, scalar: str) -> Callable:
    def operate(self: Symbol, other: Any) -> Any:
        return combined(self, other, pair, scalar)

    return operate


def combined(self: Any, other: Any, pair: str, scalar: str) -> Any:
    """The symbol of an operator on two symbols, or a symbol and a number."""
    if isinstance(other, Symbol):
        return create(lookup(pair), pair, (self, other), {}, None, None)
    if isinstance(other, (int, float, onp.number, onp.bool_)):
        return create(lookup(scalar), scalar, (self,), {"scalar": other}, None, None)
    return NotImplemented


_OPERATORS = {
    "__add__": ("_Plus", "_PlusScalar"), "__radd__": ("_Plus", "_PlusScalar"),
    "__sub__": ("_Minus", "_MinusScalar"), "__rsub__": ("", "_RMinusScalar"),
    "__mul__": ("_Mul", "_MulScalar"), "__rmul__": ("_Mul", "_MulScalar"),
    "__truediv__": ("_Div", "_DivScalar"), "__rtruediv__": ("", "_RDivScalar"),
    "__mod__": ("_Mod", "_ModScalar"), "__rmod__": ("", "_RModScalar"),
    "__pow__": ("_Power", "_PowerScalar"), "__rpow__": ("", "_rpower_scalar"),
    "__eq__": ("_equal", "_equal_scalar"), "__ne__": ("_not_equal", "_not_equal_scalar"),
    "__gt__": ("_greater", "_greater_scalar"), "__ge__": ("_greater_equal", "_greater_equal_scalar"),
    "__lt__": ("_lesser", "_lesser_scalar"), "__le__": ("_lesser_equal", "_lesser_equal_scalar"),
}  # fmt: skip
for _name, _pair in _OPERATORS.items():
    setattr(Symbol, _name, _binary(*_pair))
Symbol.__neg__ = lambda self: self * -1.0
Symbol.__abs__ = lambda self: create(lookup("abs"), "abs", (self,), {}, None, None)

# Operators that are methods too: net.reshape((2, 3)) is reshape(net, (2, 3)).
FLUENT = (
    *(
        [
            "abs",
            "arccos",
            "arccosh",
            "arcsin",
            "arcsinh",
            "arctan",
            "arctanh",
            "argmax",
            "argmax_channel",
            "argmin",
            "argsort",
            "broadcast_axes",
        ]
    ),
    *(
        [
            "broadcast_like",
            "broadcast_to",
            "cbrt",
            "ceil",
            "clip",
            "cos",
            "cosh",
            "degrees",
            "depth_to_space",
            "diag",
            "exp",
            "expand_dims",
            "expm1",
        ]
    ),
    *(
        [
            "fix",
            "flatten",
            "flip",
            "floor",
            "log",
            "log10",
            "log1p",
            "log2",
            "log_softmax",
            "max",
            "mean",
            "min",
            "nanprod",
            "nansum",
            "norm",
            "one_hot",
        ]
    ),
    *(
        [
            "ones_like",
            "pad",
            "pick",
            "prod",
            "radians",
            "rcbrt",
            "reciprocal",
            "relu",
            "repeat",
            "reshape_like",
            "rint",
            "round",
            "rsqrt",
        ]
    ),
    *(
        [
            "shape_array",
            "sigmoid",
            "sign",
            "sin",
            "sinh",
            "size_array",
            "slice",
            "slice_axis",
            "slice_like",
            "softmax",
            "softmin",
            "sort",
        ]
    ),
    *(
        [
            "space_to_depth",
            "split",
            "sqrt",
            "square",
            "squeeze",
            "sum",
            "swapaxes",
            "take",
            "tan",
            "tanh",
            "tile",
            "topk",
            "trunc",
            "zeros_like",
        ]
    ),
)


def _method(called: str) -> Callable:
    def method(self: Symbol, *args: Any, name: str | None = None, attr: Any = None, **kwargs: Any) -> Symbol:
        return create(lookup(called), called, (self, *args), kwargs, name, attr)

    method.__name__ = called
    method.__doc__ = f"minnp.symbol.{called} of this symbol."
    return method


for _name in FLUENT:
    setattr(Symbol, _name, _method(_name))


def _reshape(self: Symbol, *shape: Any, name: str | None = None, **kwargs: Any) -> Symbol:
    """minnp.symbol.reshape of this symbol: reshape((2, 3)) or reshape(2, 3)."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        (shape,) = shape
    shape = kwargs.pop("shape", shape)
    return create(lookup("reshape"), "reshape", (self,), {"shape": shape, **kwargs}, name, None)


def _transpose(self: Symbol, *axes: Any, name: str | None = None, **kwargs: Any) -> Symbol:
    """minnp.symbol.transpose of this symbol: transpose(), transpose((1, 0)) or transpose(1, 0)."""
    if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
        (axes,) = axes
    axes = kwargs.pop("axes", axes)
    return create(lookup("transpose"), "transpose", (self,), {"axes": axes} if axes else {}, name, None)


def _astype(self: Symbol, dtype: Any, **kwargs: Any) -> Symbol:
    """minnp.symbol.cast of this symbol."""
    return create(lookup("cast"), "cast", (self,), {"dtype": dtype}, kwargs.get("name"), None)


def _split(self: Symbol, *args: Any, **kwargs: Any) -> Symbol:
    """minnp.symbol.split_v2 of this symbol."""
    from . import split_v2

    return split_v2(self, *args, **kwargs)


Symbol.reshape, Symbol.transpose, Symbol.astype, Symbol.split_v2 = _reshape, _transpose, _astype, _split
