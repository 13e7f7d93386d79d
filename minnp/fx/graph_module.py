"""GraphModule: a graph with the parameters and layers it reads, as a layer of minnp.nn that is called and trained."""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable
from typing import Any

import minnp.numpy as np
from minnp.core.arrays.array import array_of
from minnp.core.cpu.sources import keep_source
from minnp.core.graph.codegen import Code
from minnp.core.graph.graph import Graph
from minnp.core.graph.interpreter import blame
from minnp.core.graph.node import Node, attribute
from minnp.core.graph.proxy import Proxy
from minnp.core.rows.value import Host
from minnp.nn.model import Layer, ModelBase

_SERIAL = itertools.count()


class Ignored:
    """`ANY`: an argument that the traced model takes and nothing in its graph reads."""

    def __repr__(self) -> str:
        return "ANY"

    def __reduce__(self) -> str:
        return "ANY"


ANY = Ignored()


class GraphModule(ModelBase):
    """A callable made of a graph: `gm(x)` runs the Python that `gm.code` shows.

    It is a layer: `gm.tree()` has its parameters, under the names that the traced model gave them, and gradients,
    optimisers, `fit`, checkpoints and pickle work on it. Layers are shared with the model that was traced. After a
    change of the graph, `recompile()` makes the code anew. An error in it names the node and the line of the user's
    file that it came from.

    root         where attributes and layers come from: the traced model, any object, or a dict of names to values
    graph        what it runs; becomes this module's own
    class_name   how it is shown

    >>> program = fx.symbolic_trace(lambda x: np.exp(x))
    >>> program(np.zeros(2))
    array([1., 1.])
    """

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.class_name = class_name
        # the traced function's positional arguments; those that are no inputs of the graph, with the only value each
        # may have (ANY: it makes no difference)
        self.specialised: tuple = getattr(root, "specialised", ()) if isinstance(root, GraphModule) else ()
        # the only shapes that inputs may have, by name; inputs that are not here may have any
        self.shapes: dict[str, tuple[int, ...]] = dict(root.shapes) if isinstance(root, GraphModule) else {}
        # what tells, of a captured function, whether the graph is that of inputs of other sizes (capturing.Sizes)
        self.sizes: Any = root.sizes if isinstance(root, GraphModule) else None
        self._constants: dict[str, Any] = {}  # the arrays from outside that it holds, by the names of its attributes
        # Layers first: of a layer that is traced through and read, its parameters alone would be taken.
        for node in sorted(graph.nodes, key=lambda n: n.op != "call_module"):
            if node.op in ("get_attr", "call_module") and "constant" not in node.meta and not _has(self, node.target):
                if isinstance(root, dict):
                    self.add_submodule(node.target, root[node.target])
                else:
                    _share(root, self, node.target)
        loss = getattr(root, "loss", None)
        if callable(loss) and not isinstance(root, GraphModule):
            self.loss = loss
        self.graph = graph

    # -------------------------------------------------------------- graph and code
    @property
    def graph(self) -> Graph:
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        self._graph = graph
        graph.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The Python that runs."""
        return self._code.text

    def recompile(self) -> Code:
        """Make the code anew from the graph."""
        for node in self._graph.find_nodes(op="get_attr"):
            if "constant" in node.meta:
                self._hold(node, node.meta["constant"])
        code = self._code = Code(self._graph, attributes=True)
        # A name for linecache, so that tracebacks and debuggers show the generated lines.
        file = f"<minnp.fx {self.class_name} {next(_SERIAL)}>"
        names = {"np": np, "__name__": "minnp.fx.generated", **code.names}
        exec(compile(code.running, file, "exec", optimize=0), names)  # guards are assertions, under python -O, too
        self._run: Callable = names["forward"]
        keep_source(file, code.text, self._run)
        self._inputs = [n.target for n in self._graph.find_nodes(op="placeholder")]
        self._has_mode = any(n.args for n in self._graph.find_nodes(op="placeholder", target="mode"))
        return code

    def _hold(self, node: Node, constant: Any) -> None:
        """Have the array that a node reads in the attribute of its name, or in another where that has another use."""
        if _has(self, node.target):
            if self._constants.get(node.target) is constant:
                return
            numbered = (f"{node.target}_{k}" for k in itertools.count(1))
            node.target = next(name for name in numbered if not _has(self, name))
        self._constants[node.target] = constant
        setattr(self, node.target, array_of(constant) if isinstance(constant, Host) else constant)

    @property
    def __signature__(self) -> inspect.Signature:
        signature = inspect.signature(self._run)
        return signature.replace(parameters=list(signature.parameters.values())[1:])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The graph's output. Raises ValueError for an input of another shape than `shapes` says, or for which a
        captured function has another graph."""
        try:
            if self.shapes or self.sizes is not None:
                self._check_shapes(args, kwargs)
            if self.specialised:
                args, kwargs = self._without_specialised(args, kwargs)
            if self._has_mode and "mode" in kwargs and kwargs["mode"] is None:
                del kwargs["mode"]  # says nothing: the graph's own, which train and eval set
            return self._run(self, *args, **kwargs)
        except Exception as error:
            blame(error, self._run, self._code.lines)
            raise

    def _check_shapes(self, args: tuple, kwargs: dict) -> None:
        names = self._inputs
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            wanted = self.shapes.get(name)
            if wanted is not None and not isinstance(value, Proxy) and np.shape(value) != wanted:
                raise ValueError(f"{name} has shape {np.shape(value)}; the graph is that of arrays of shape {wanted}")
        if self.sizes is not None:
            self.sizes.check([*args, *(kwargs[n] for n in names[len(args) :] if n in kwargs)])

    def _without_specialised(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments without those the graph was traced for, which may be given again, as they were."""
        (names, values), inputs = self.specialised, self._inputs
        given = {k: v for k, v in kwargs.items() if k in values and k not in inputs}
        if len(args) > len(inputs) or any(name.startswith("*") for name in inputs):
            given |= {k: v for k, v in zip(names, args, strict=False) if k in values}
            args = tuple(v for i, v in enumerate(args) if i >= len(names) or names[i] not in values)
        for name, value in given.items():
            if values[name] is not ANY and value is not values[name] and value != values[name]:
                raise ValueError(f"the graph was traced for {name}={values[name]!r}, not {value!r}")
        return args, {k: v for k, v in kwargs.items() if k not in given}

    # -------------------------------------------------------------- training and testing
    @property
    def takes_mode(self) -> bool:
        """Whether it is called with mode=: its graph has such an input, or nothing in it differs by the mode."""
        inputs = self._graph.find_nodes(op="placeholder", target="mode")
        return bool(inputs) or (bool(self.specialised) and self.specialised[1].get("mode") is ANY)

    def train(self, mode: bool = True) -> GraphModule:
        """Calls that say no mode are in "train" mode from now on (train(False): in "test" mode); returns self.

        Raises ValueError for a graph that was traced for one mode alone.
        """
        chosen = "train" if mode else "test"
        only = self.specialised[1].get("mode", ANY) if self.specialised else ANY
        if only is not ANY and only != chosen:
            raise ValueError(f"the graph was traced for mode={only!r}: trace it without, and calls choose the mode")
        for node in self._graph.find_nodes(op="placeholder", target="mode"):
            node.args = (chosen,)
        self.recompile()
        return self

    def eval(self) -> GraphModule:
        """Calls that say no mode are in "test" mode from now on; returns self."""
        return self.train(False)

    def forward_batch(self, batch: Any, mode: str) -> Any:
        return self(batch.data[0], mode=mode) if self.takes_mode else self(batch.data[0])

    # -------------------------------------------------------------- what it holds
    def parameters(self) -> list:
        """Every trained array; `tree()` has them by name."""
        return list(self.tree().values())

    def get_submodule(self, target: str) -> Any:
        """The layer (or other attribute) of a dotted name. Raises AttributeError."""
        return attribute(self, target)

    def add_submodule(self, target: str, module: Any) -> None:
        """Put a layer (or array) under a dotted name; the parts of the name that are not there yet are made."""
        *path, last = target.split(".")
        at: Any = self
        for part in path:
            if not isinstance(vars(at).get(part), Layer):
                setattr(at, part, Layer())
            at = vars(at)[part]
        setattr(at, last, module)

    def delete_submodule(self, target: str) -> bool:
        """Forget the layer of a dotted name; whether there was one."""
        *path, last = target.split(".")
        try:
            held = vars(attribute(self, ".".join(path)) if path else self)
        except AttributeError:
            return False
        return held.pop(last, None) is not None

    def delete_all_unused_submodules(self) -> None:
        """Forget every layer that the graph does not read."""
        used = [n.target for n in self._graph.nodes if n.op in ("call_module", "get_attr")]

        def prune(at: Layer, prefix: str) -> None:
            for name, child in list(at.children()):
                full = prefix + name
                if any(u == full or full.startswith(u + ".") for u in used):
                    continue
                if not any(u.startswith(full + ".") for u in used):
                    vars(at).pop(name, None)
                else:
                    prune(child, full + ".")

        prune(self, "")

    def to_folder(self, folder: str | os.PathLike) -> str:
        """Write `module.py` with the code, and `module.pickle` with this module; returns the path of module.py."""
        import pickle

        os.makedirs(folder, exist_ok=True)
        path = os.path.join(os.fspath(folder), "module.py")
        with open(path, "w") as f:
            f.write(f"import minnp.numpy as np\n\n\n{self.code}")
        with open(os.path.join(os.fspath(folder), "module.pickle"), "wb") as f:
            pickle.dump(self, f)
        return path

    def print_readable(self, print_output: bool = True) -> str:
        """The code as that of a class, which is also printed."""
        text = f"class {self.class_name}:\n    " + self.code.replace("\n", "\n    ").rstrip()
        if print_output:
            print(text)
        return text

    def __repr__(self) -> str:
        return f"{self.class_name}({', '.join(name for name, _ in self.children())})\n\n{self.code}"

    def __getstate__(self) -> dict:
        made = ("_code", "_run", "_inputs", "_has_mode")
        return {k: v for k, v in vars(self).items() if k not in made} | {"sizes": None}

    def __setstate__(self, saved: dict) -> None:
        vars(self).update(saved)
        self.graph = self._graph

    def __deepcopy__(self, memo: dict) -> GraphModule:
        import copy

        new = object.__new__(type(self))
        memo[id(self)] = new
        saved = {k: copy.deepcopy(v, memo) for k, v in self.__getstate__().items() if k not in ("_graph", "_constants")}
        # the constants are those that the nodes of the copied graph name
        vars(new).update(saved, sizes=self.sizes, _constants=dict(self._constants))
        new.graph = self._graph.copy()
        return new


def _has(owner: Any, name: str) -> bool:
    try:
        attribute(owner, name)
    except AttributeError:
        return False
    return True


def _share(source: Any, to: Layer, target: str) -> None:
    """Give `to` what `source` has under a dotted name: the same layer or array, in containers of its own."""
    *path, last = target.split(".")
    for part in path:
        source = attribute(source, part)
        if not isinstance(vars(to).get(part), Layer):
            setattr(to, part, Layer())
        to = vars(to)[part]
    if isinstance(source, Layer) and (last in source.params or last in source.aux_params):
        # A parameter of a layer that is traced through: its dict is shared, so that training reaches both.
        to.params, to.aux_params, to.param_configs = source.params, source.aux_params, source.param_configs
        to.aux_param_configs = source.aux_param_configs
    else:
        setattr(to, last, attribute(source, last))
