"""The torch.fx article, second figure: a transformation that puts one activation in the place of another."""

import copy

import minnp.numpy as np
from minnp import fx, grad, npx


def replace_activation(g: fx.Graph, old_op, new_op):
    for n in g.nodes:
        if n.op == "call_function" and n.target == old_op:
            with g.inserting_after(n):
                new_n = g.call_function(new_op, n.args, n.kwargs)
            n.replace_all_uses_with(new_n)
            g.erase_node(n)


def my_func(x):
    return np.negative(npx.relu(x)) + npx.relu(x * 2)


traced = fx.symbolic_trace(my_func)
original = copy.deepcopy(traced)
replace_activation(traced.graph, npx.relu, npx.gelu)
traced.graph.lint()
traced.recompile()
x = np.linspace(-2, 2, 5)
print([n.name for n in traced.graph.nodes])
print(np.allclose(traced(x), -npx.gelu(x) + npx.gelu(x * 2)), np.allclose(original(x), my_func(x)))
print(np.allclose(grad(lambda x: traced(x).sum())(x), grad(lambda x: (npx.gelu(x * 2) - npx.gelu(x)).sum())(x)))

# in this simple case it is enough to set the target
simple = fx.symbolic_trace(my_func)
for n in simple.graph.nodes:
    if n.target is npx.relu:
        n.target = npx.gelu
simple.recompile()
print(np.allclose(simple(x), traced(x)))

# or to write the two as patterns
patterned = fx.symbolic_trace(my_func)
print(
    len(fx.replace_pattern(patterned, lambda x: npx.relu(x), lambda x: npx.gelu(x))),
    np.allclose(patterned(x), traced(x)),
)
