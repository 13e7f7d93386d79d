"""The commonest mistakes: each error is of NumPy's type where NumPy raises, says what is wrong with which values and
what to write instead, and leads to the user's line."""

import contextlib
import json
import math
import os
import subprocess
import sys
import traceback

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import fx, nn, npx, testing
from minnp import symbol as sym
from minnp.errors import (
    BackendMissingError,
    CaptureError,
    FallbackError,
    NotDifferentiableError,
    RecompilationWarning,
    SymbolError,
    TracedValueError,
)
from minnp.nn.checkpoint import CheckpointError

MODULES = {
    "fx": fx,
    "math": math,
    "minnp": minnp,
    "nn": nn,
    "np": np,
    "npx": npx,
    "numpy": numpy,
    "sym": sym,
    "testing": testing,
}
pytestmark = [
    pytest.mark.host("errors of programs; backends have their own kernels and the same checks"),
    pytest.mark.either("errors that Python and C raise alike, which test_compiled compares"),
]
FLOATS = "only a float or complex result has a gradient. Integers and truth values have none"
LEAVES = "was about to leave minnp"
CUT = "np.stop_gradient(x) to cut the gradient on purpose"

# a program; what it raises; what the message, with its notes, has in it
MISTAKES = [
    # NumPy's
    ("np.ones((2, 3)) @ np.ones((2, 3))", ValueError, "size 2 is different from 3"),
    ("a + np.ones(2)", ValueError, "could not be broadcast together with shapes (3,) (2,)"),
    ("a.reshape(2, 2)", ValueError, "array of size 3 into shape (2,2)"),
    ("a[5]", IndexError, "index 5 is out of bounds for axis 0 with size 3"),
    ("a['x']", IndexError, "only integers, slices"),
    ("np.concatenate([np.ones((2, 2)), np.ones((3, 3))])", ValueError, "along dimension 1", "size 2", "size 3"),
    ("bool(a)", ValueError, "ambiguous", "a.any() or a.all()"),
    ("np.sum(a, axis=2)", numpy.exceptions.AxisError, "axis 2 is out of bounds for array of dimension 1"),
    ("np.zeros(3, dtype='float99')", TypeError, "'float99' not understood"),
    ("np.tanhh(a)", AttributeError, "'tanhh'"),
    ("np.sum(a, axes=0)", TypeError, "'axes'"),
    ("np.linalg.inv(np.zeros((2, 2)))", numpy.linalg.LinAlgError, "Singular matrix"),
    ("a.sumz()", AttributeError, "'sumz'"),
    ("np.broadcast_to(a, (2, 3)).__setitem__(0, 1)", ValueError, "read-only"),
    ("np.load(pickled)", ValueError, "allow_pickle=False"),
    ("np.load(junk)", ValueError, "pickled", "allow_pickle="),
    ("np.zeros(3, device='tpu')", ValueError, "tpu", "gpu:0"),
    # gradients
    ("minnp.grad(lambda x: (x * 2).sum())(np.array([1, 2]))", TypeError, "int64[]", FLOATS, "x.astype(float)"),
    ("minnp.grad(lambda x: x > 0)(1.0)", TypeError, "bool[]", FLOATS),
    ("minnp.grad(lambda x: None)(1.0)", TypeError, "None", "is a return missing?"),
    ("minnp.grad(lambda x: 'text')(1.0)", TypeError, "returned", FLOATS),
    ("minnp.grad(lambda x: x)('a')", TypeError, "argument 0", "'a' is a str", "array, a number"),
    ("minnp.grad(lambda x: x)(['a'])", TypeError, "argument 0", "'a' is a str"),
    ("minnp.grad(lambda x: x, 2)(1.0)", TypeError, "argument 2 of <lambda>", "called with 1 positional"),
    ("minnp.grad(lambda x: x, 'y')(1.0)", TypeError, "argument 'y' of <lambda>", "none by name"),
    ("minnp.grad(3.0)", TypeError, "takes a function, got 3.0 (float)", "grad(f)(x), not grad(f(x))"),
    ("minnp.value_and_grad(np.sum(a))", TypeError, "value_and_grad(f)(x), not value_and_grad(f(x))"),
    ("minnp.grad(lambda x: x, [])", TypeError, "argnum must be an int, a name, or a list"),
    (
        "minnp.grad(lambda x: x * 1j)(1.0)",
        TypeError,
        "complex128[]",
        "float64[]",
        "np.real(y), np.imag(y) or np.abs(y)",
    ),
    ("minnp.grad(lambda x: float(x))(1.0)", TracedValueError, "float64[]", LEAVES, "as a Python float", CUT),
    ("minnp.grad(lambda x: math.exp(x))(1.0)", TracedValueError, LEAVES, "np.exp for math.exp"),
    ("minnp.grad(lambda x: x.item())(1.0)", TracedValueError, LEAVES, CUT),
    ("minnp.grad(lambda x: sum(x.tolist()))(a)", TracedValueError, "float64[3]", "as Python numbers", CUT),
    ("minnp.grad(lambda x: numpy.asarray(x).sum())(a)", TracedValueError, "numpy.ndarray", "minnp.custom_vjp"),
    ("minnp.grad(np.random.gamma)(1.0)", NotDifferentiableError, "np.random.gamma", "argument 0", "minnp.custom_vjp"),
    ("minnp.grad(lambda x: x, has_aux=True)(1.0)", TypeError, "(result, aux)", "it returned"),
    ("minnp.jvp(np.sin, (a,), (np.ones(2),))", ValueError, "shape (2,)", "shape (3,)"),
    ("minnp.jvp(np.sin, a, a)", TypeError, "jvp(f, (x,), (v,))"),
    ("minnp.vjp(np.sin, a)[1](np.ones(2))", ValueError, "cotangent of shape (2,)", "result of shape (3,)"),
    ("minnp.vjp(lambda x: (x, x), a)[1]((a,))", ValueError, "wants 2 cotangents", "got 1"),
    (
        "minnp.grad(lambda x: np.add(x, 1, out=np.float64(1)).sum())(a)",
        TypeError,
        "must be of ArrayType",
        "got float64",
    ),
    ("minnp.jacobian(np.sin, mode='backward')(a)", ValueError, "'reverse' or 'forward'", "'backward'"),
    ("minnp.jacobian(lambda p: p['a'])({'a': 'b'})", TypeError, "numbers and arrays, alone or in a tree", "got str"),
    ("minnp.jacobian(np.add, (0, 1))(a, a)", TypeError, "got argnum=(0, 1)", "lambda p: f(*p)"),
    ("minnp.hvp(lambda x: np.sum(x**2))(a)", TypeError, "then the vector v", "called with 1"),
    ("minnp.custom_vjp(lambda x: x)(1.0)", TypeError, "<lambda> has no rule yet", ".defvjp(forward, backward)"),
    ("minnp.grad(two_cotangents)(1.0)", TypeError, "returned 2 cotangents for 1 arguments"),
    ("minnp.grad(wrong_cotangent)(a)", ValueError, "cotangent of shape (2,)", "argument of shape (3,)"),
    ("minnp.checkpoint(3)", TypeError, "checkpoint takes a function", "3 (int)"),
    (
        "testing.check_grads(planted, (numpy.ones(2),))",
        AssertionError,
        "derivative of planted",
        "central differences give",
    ),
    ("testing.check_grads(np.sin, (numpy.ones(2, 'f4'),))", TypeError, "float64 or complex128", "float32"),
    ("testing.check_grads(np.sin, (1.0,), modes=['forward'])", ValueError, "['forward']", "'rev', 'fwd'"),
    # batches
    ("minnp.vmap(np.add)(np.ones(2), np.ones(3))", ValueError, "one batch size, got [2, 3]"),
    ("minnp.vmap(np.sin, in_axes=None)(a)", ValueError, "no batched argument"),
    ("minnp.vmap(np.add, in_axes=(0,))(a, a)", ValueError, "in_axes for 1 arguments", "called with 2"),
    ("minnp.vmap(np.sin)(1.0)", ValueError, "axis 0 of an argument of shape ()", "in_axes=None"),
    ("minnp.vmap(3)", TypeError, "vmap takes a function"),
    # compilation and graphs
    (
        "[guarded(np.array([float(i), 1.0])) for i in range(9)]",
        RecompilationWarning,
        "<jit of",
        "2 different paths",
        "np.where",
    ),
    ("[again(np.array([float(i), 1.0])) for i in range(9)]", RecompilationWarning, "test_messages.py:", "limit="),
    ("minnp.jit(np.sin, compiler='gcc')", ValueError, "'gcc'", "auto, llvm, numpy"),
    ("minnp.jit(lambda x: x, static='y')(1.0)", ValueError, "static='y'", "arguments are x"),
    ("minnp.jit(3)", TypeError, "jit takes a function"),
    ("fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)", CaptureError, "user.py:1", "bool() of gt", "minnp.jit"),
    ("fx.symbolic_trace(lambda x: float(x))", CaptureError, "user.py:1", "float() of x", "concrete_args"),
    ("fx.symbolic_trace(lambda x: list(range(x)))", CaptureError, "user.py:1", "range() of x", "fx.wrap"),
    (
        "fx.capture(lambda x: x if x.sum() > 0 else -x, a)(-a)",
        AssertionError,
        "another path",
        "minnp.jit(f)",
        "greater",
    ),
    ("fx.symbolic_trace(lambda x: x + 1)(a, a)", TypeError, "takes 2 positional arguments but 3 were given"),
    ("fx.symbolic_trace(lambda x, y: x @ y)(a, np.ones(2))", ValueError, "node matmul", "of x, y", "user.py:1"),
    ("fx.flops(fx.symbolic_trace(lambda x: x + 1).graph)", ValueError, "shape of x is not known", "propagate_shapes"),
    ("minnp.Variable('a b')", ValueError, "'a b'", "one of Python's"),
    ("minnp.compile(minnp.Variable('a') + minnp.Variable('a'))", ValueError, "named a", "its own name"),
    ("minnp.compile(minnp.Variable('a') * 2)(b=1)", TypeError, "no argument 'b' and lacks 'a'", "it wants a"),
    ("fx.lower(net, '0', 'cuda')", ValueError, "'cuda'", "llvm, numpy, mxnet, torch"),
    ("fx.lower(net, '7')", ValueError, "'7'", "it calls 0, 1, 2"),
    # backends and devices
    ("minnp.policy('prefer_cuda')", ValueError, "'prefer_cuda'", "known: auto, only_numpy"),
    ("minnp.set_backend('tensorflow')", ValueError, "'tensorflow'", "known: auto, numpy"),
    ("minnp.Context('tpu')", ValueError, "'tpu'", "known: cpu, gpu"),
    ("minnp.gpu(-1)", ValueError, "-1", "the first is 0"),
    ("minnp.Context('gpu:1', 2)", ValueError, "'gpu:1'", "2", "give one of them"),
    ("a.to_device('tpu')", ValueError, "tpu", "gpu:0"),
    ("minnp.set_num_threads(0)", ValueError, "at least 1, got 0"),
    ("minnp.memory_reuse(limit=-1)", ValueError, "must not be negative, got -1"),
    # learning
    (
        "nn.Conv2D(3, 8, 3).init(0)(np.ones((1, 4, 8, 8)))",
        ValueError,
        "(1, 4, 8, 8)",
        "(8, 3, 3, 3)",
        "y[n, f, i, j] =",
    ),
    ("net(np.ones((2, 5), 'f4'))", ValueError, "x float32[2, 5]", "w float32[3, 4]", "y = x w + b"),
    ("nn.Conv2D(3, 8, 5, strides=2)", TypeError, "no argument 'strides'", "do you mean 'stride'?"),
    ("nn.Dense", AttributeError, "'Dense'", "do you mean 'Linear'?"),
    ("nn.Linear(3.5, 2)", TypeError, "whole number, got 3.5"),
    ("nn.Linear(3, 2)(np.ones((1, 3)))", KeyError, "Linear has no parameter 'w'", ".init()"),
    ("npx.activation(a, 'reluu')", ValueError, "'reluu'", "choose from relu, sigmoid"),
    ("npx.convolution(x4, x4, strides=1)", TypeError, "'strides'", "do you mean 'stride'?"),
    ("npx.softmax(a, axis=3)", numpy.exceptions.AxisError, "axis 3 is out of bounds"),
    ("npx.dropout(a, 1.5)", ValueError, "[0, 1)", "1.5"),
    ("nn.losses.softmax_loss(np.ones((2, 3)), np.array([0, 7]))", IndexError, "index 7", "size 3", "labels y [N]"),
    ("nn.losses.softmax_loss(np.ones((2, 3)), np.array([0, 1, 2]))", ValueError, "[2, 3]", "int64[3]"),
    ("nn.Sequential(nn.Linear(1, 1), loss='hinge2')", ValueError, "'hinge2'", "known: softmax_loss"),
    ("net.fit(x3, y, optimizer='adamm')", ValueError, "'adamm'", "do you mean 'adam'?"),
    ("net.fit(x3, y, epoch=1)", TypeError, "'epoch'", "do you mean 'epochs'?"),
    ("net.fit(x3, y[:3], verbose=False)", ValueError, "'data' has 4", "has 3"),
    ("net.fit(x3, y, learning_rate=-1)", ValueError, "learning_rate", "-1"),
    ("nn.Linear(1, 1).init(0, rule='zavier')", ValueError, "'zavier'", "do you mean 'xavier'?"),
    ("net.evaluate(x3, y, metrics=['acc2'])", ValueError, "'acc2'", "known: accuracy"),
    ("nn.io.NDArrayIter(x3, batch_size=9)", ValueError, "between 1 and the 4 examples; got 9"),
    ("nn.optim.sgd(a, a, learning_rat=1)", TypeError, "learning_rat", "learning_rate"),
    # files
    ("net.load(missing)", CheckpointError, "no checkpoint at", "missing"),
    ("nn.checkpoint.load(junk)", CheckpointError, "is not a checkpoint: 120 bytes"),
    ("nn.datasets.mnist(folder)", FileNotFoundError, "train-images-idx3-ubyte", "download them from"),
    ("minnp.load_mxnet(missing)", FileNotFoundError, "missing-symbol.json"),
    ("sym.params.load(junk)", ValueError, "expected 0x112", "at byte 0"),
    # symbols
    ("sym.load_json('{')", SymbolError, "cannot be read", "line 1 column 2"),
    ("sym.load_json(misspelt)", SymbolError, "'Convolutoin'", "near it: Convolution"),
    ("sym.FullyConnected(x, num_hiden=3)", TypeError, "'num_hiden'", "do you mean 'num_hidden'?"),
    ("sym.FullyConnected(x)", SymbolError, "lacks the parameter num_hidden (int"),
    ("fc.simple_bind(None)", SymbolError, "shapes of x, fc_weight do not follow"),
    ("minnp.Function(fc, {'x': (1, 2)})(x=np.ones((1, 2)))", SymbolError, "lacks 'fc_weight'", "fc_weight (3, 2)"),
    ("minnp.Function(x * 2)(y=1.0)", SymbolError, "no argument 'y' and lacks 'x'"),
    ("minnp.Function(x * 2, [1])", TypeError, "dict of names and shapes", "got [1]"),
    # processes
    ("minnp.kvstore.create('dist_foo')", ValueError, "'dist_foo'", "known: local"),
    ("minnp.distributed.init(3)", ValueError, "shape (3,)", "1 process"),
    ("minnp.distributed.init().all_reduce(a, 'avg')", ValueError, "'avg'", "known: sum, mean"),
    ("minnp.distributed.init().broadcast(a, root=4)", ValueError, "rank 4 of a mesh of 1"),
    # typing errors, and names and arguments of other libraries
    ("np.zero(3)", AttributeError, "'zero'"),
    ("minnp.numppy", AttributeError, "'minnp' has no attribute 'numppy'"),
    ("minnp.no_grad()", AttributeError, "'no_grad'", "np.stop_gradient(x)"),
    ("minnp.lax.scan", AttributeError, "'lax'", "Python's loops and branches, which jit compiles"),
    ("minnp.optim.Adam", AttributeError, "'optim'", "minnp.nn.optim"),
    ("nn.Module", AttributeError, "'Module'", "do you mean 'ModelBase'?"),
    ("nn.CrossEntropyLoss()", AttributeError, "'CrossEntropyLoss'", "'losses.softmax_loss'"),
    ("a.sum(dim=0)", TypeError, "'dim'"),
    ("a.view(3, 1)", ValueError, "sub-type of ndarray"),
    ("np.ones(3, 4)", TypeError, "'4' as a data type"),
    ("np.concatenate(a, a)", TypeError, "integer scalar arrays"),
    ("np.stack([a, np.ones(2)])", ValueError, "same shape"),
    ("np.random.randn((2, 3))", TypeError, "'tuple'"),
    ("np.arange(3).__iadd__(0.5)", TypeError, "'float64'", "'int64'", "'same_kind'"),
    ("np.ones(3, device='gpu:x')", ValueError, "gpu:x", "gpu:0"),
    ("minnp.set_backend('pytorch')", ValueError, "'pytorch'", "do you mean 'torch'?"),
    ("minnp.policy('torch')", ValueError, "'torch'", "do you mean 'prefer_torch'?"),
    ("minnp.policy(3)", ValueError, "unknown policy 3", "known: auto"),
    # wrong calls of transformations
    ("minnp.grad(lambda x, y: x * y)(1.0)", TypeError, "missing 1 required positional argument: 'y'"),
    ("minnp.grad(np.sin)()", TypeError, "argument 0 of sin", "0 positional"),
    ("minnp.grad(np.sin, a)", TypeError, "argnum must be an int"),
    ("minnp.vmap(np.sin, 0, 3)(x3)", ValueError, "out_axes", "at 3", "(4, 3)"),
    ("minnp.jit(lambda x: x, static=3)", ValueError, "static=3", "arguments are x"),
    ("minnp.jit(limit=4)(3)", TypeError, "jit takes a function, got 3"),
    ("minnp.jvp(np.sin, (1.0,), 1.0)", TypeError, "jvp(f, (x,), (v,))"),
    ("testing.check_grads(np.sin, 3.0)", TypeError, "check_grads(f, (x,))", "3.0"),
    ("fx.symbolic_trace(3)", TypeError, "takes a function or a model, got 3 (int)"),
    # learning
    ("nn.Conv2D(3, 8, (3, 3, 3))", ValueError, "kernel_size is one number or 2", "(3, 3, 3)"),
    ("nn.Conv2D(1, 8, 9).init(0)(x4)", ValueError, "(1, 1, 4, 4)", "kernel (9, 9)", "larger than the data"),
    ("nn.Conv2D(3, 8, 3, groups=2)", ValueError, "groups=2 does not divide 3"),
    ("nn.MultiHeadAttention(10, 3)", ValueError, "3 does not divide 10"),
    ("nn.LSTM(3, 4).init(0)(np.ones((2, 3)))", ValueError, "LSTM takes sequences [N, T, 3]", "got [2, 3]"),
    ("nn.GRU(3, 4).init(0)(np.ones((2, 5, 4)))", ValueError, "GRU takes sequences [N, T, 3]", "got [2, 5, 4]"),
    ("nn.Dropout(0.5)(a, mode='eval')", ValueError, "'eval'", "'train' or 'test'"),
    ("nn.Sequential([nn.Linear(3, 4)])", TypeError, "Sequential(first, second, ...)"),
    ("nn.losses.softmax_loss(np.ones(3), np.array([0]))", ValueError, "scores are [N, C]", "got [3]"),
    ("nn.optim.adam(a, np.ones(2), {})", ValueError, "adam: the gradient has shape (2,), its parameter (3,)"),
    ("net.fit(x3, y, lr=0.1)", TypeError, "'lr'", "do you mean 'learning_rate'?"),
    ("net.fit(x3)", ValueError, "needs labels y"),
    ("net.fit(x3, y + 7, verbose=False)", IndexError, "index 7", "size 2", "labels y [N]"),
    ("nn.Solver(net, (x3, y))", TypeError, "got a tuple", "NDArrayIter(x, y, batch_size)"),
    ("nn.checkpoint.save(missing + '/x', {})", FileNotFoundError, "no such folder", "missing'"),
    ("np.load(missing + '.npy')", FileNotFoundError, "missing.npy"),
    ("minnp.distributed.init('tcp')", TypeError, "'tcp'", "number of processes"),
    # names and keywords of other libraries
    ("minnp.jit(np.sin, static_argnums=0)", TypeError, "no argument 'static_argnums'", "static="),
    ("minnp.jit(np.sin, donate_argnums=0)", TypeError, "'donate_argnums'", "used again by itself"),
    ("minnp.vmap(np.sin, axis=0)", TypeError, "no argument 'axis'", "in_axes="),
    ("minnp.array([1])", AttributeError, "'array'", "np.array of minnp.numpy"),
    ("minnp.tensor([1])", AttributeError, "'tensor'", "np.array of minnp.numpy"),
    ("minnp.autograd.record()", AttributeError, "'autograd'", "minnp.grad(f)(x)"),
    ("minnp.save('x', a)", AttributeError, "'save'", "np.save", "net.save"),
    ("minnp.cuda.synchronize()", AttributeError, "'cuda'", "minnp.gpu(0)"),
    ("minnp.grad(lambda x: x.detach())(a)", AttributeError, "'detach'", "np.stop_gradient(x)"),
    ("minnp.grad(lambda x: x.at[0].set(1).sum())(a)", AttributeError, "'at'", "x[i] = v"),
    ("minnp.set_backend('cuda')", ValueError, "'cuda'", "minnp.Context('cuda')"),
    ("nn.DataLoader(x3)", AttributeError, "'DataLoader'", "do you mean 'io.NDArrayIter'?"),
    ("net.parameters()", AttributeError, "'Sequential'", "'parameters'", "net.tree()"),
    ("net.eval()", AttributeError, "'eval'", "net(x, mode='test')"),
    ("net.state_dict()", AttributeError, "'state_dict'", "net.save(prefix)"),
    ("nn.Linear(3, 4).weight", AttributeError, "'weight'", "net.params['w']"),
    # what is given in the wrong place
    ("minnp.grad(lambda x: numpy.add.at(numpy.zeros(3), 0, x))(1.0)", TracedValueError, "float64[3]", "minnp.numpy"),
    ("minnp.grad(lambda x: numpy.put(numpy.zeros(3), 0, x))(1.0)", TracedValueError, "numpy.ndarray", "minnp.numpy"),
    ("minnp.grad(lambda x: {x: 1})(1.0)", TracedValueError, "float64[]", "hashed", CUT),
    ("minnp.jacobian(np.sin, argnum=1)(a)", TypeError, "jacobian asks for argument 1 of sin", "1 positional"),
    ("minnp.custom_vjp(3)", TypeError, "custom_vjp takes a function, got 3"),
    ("minnp.custom_jvp(3)", TypeError, "custom_jvp takes a function, got 3"),
    ("minnp.compile(lambda x: x)", TypeError, "expression of Variables", "minnp.jit"),
    ("minnp.set_num_threads('2')", TypeError, "'str'", "integer"),
    ("minnp.set_context('gpu')", TypeError, "'gpu'", "minnp.gpu(0)"),
    ("minnp.Context('cpu', 'x')", ValueError, "device number 'x'", "the first is 0"),
    ("minnp.Context('cpu', 0, 'jax')", ValueError, "'jax'", "known: mxnet, torch"),
    ("minnp.distributed.init().part(-1)", ValueError, "part of -1"),
    ("testing.check_grads(3, (1.0,))", TypeError, "takes a function, got 3"),
    ("testing.check_grads(np.sin, (1.0,), order='2')", ValueError, "order", "'2'"),
    (
        "fx.replace_pattern(np.sin, np.sin, np.cos)",
        TypeError,
        "replace_pattern changes a GraphModule",
        "symbolic_trace",
    ),
    ("fx.Interpreter(lambda x: x)", TypeError, "a graph or a GraphModule", "symbolic_trace"),
    ("fx.optimize(lambda x: x)", TypeError, "a graph or a GraphModule", "symbolic_trace"),
    ("fx.draw(3)", TypeError, "got 3", "symbolic_trace"),
    ("fx.to_onnx(lambda x: x, 'x.onnx')", TypeError, "'x.onnx'", "path="),
    ("nn.LayerNorm(3).init(0)(np.ones((2, 5)))", ValueError, "over [5] elements", "[[3], [3]]"),
    ("nn.losses.softmax_loss(np.ones((2, 3)), np.array([-1, 1]))", IndexError, "a class, 0 to 2", "is negative"),
    ("net.fit(x3, ['a', 'b', 'a', 'b'], verbose=False)", TypeError, "0 to 1", "<U1", "np.unique"),
    ("nn.Linear(3, 2).init('zeros')", TypeError, "seed is a whole number", "'zeros'"),
    ("net.fit(x3, y, validation_data=x3, verbose=False)", ValueError, "needs labels y", "came without"),
    ("net([[1.0, 2.0, 3.0]])", TypeError, "Linear takes an array", "[[1.0, 2.0, 3.0]] (list)", "np.asarray(x)"),
    ("net.fit(x3, y, epochs=1.5)", TypeError, "epochs is a whole number, got 1.5"),
    ("net.fit(x3, y, callbacks=3)", TypeError, "derived from Callback, got 3"),
    ("net.fit(x3, y, metrics=3)", TypeError, "metrics are names or functions", "got 3"),
    ("net.holding({'0.w': np.ones((9, 9))}).__enter__()", ValueError, "'0.w' is (3, 4)", "of (9, 9)"),
    ("net.holding(3).__enter__()", TypeError, "dict of arrays by dotted name", "net.tree()", "got 3"),
    ("net.set_tree([1.0])", TypeError, "dict of arrays by dotted name", "got [1.0]"),
    ("nn.checkpoint.save(folder + '/x', net)", TypeError, "dict of arrays", "net.tree()", "net.save(prefix)"),
    ("nn.checkpoint.save(net, folder + '/x')", TypeError, "checkpoint.save(path, arrays)", "got a str"),
    ("nn.optim.adam(a, a, 3)", TypeError, "settings of adam are a dict", "'learning_rate': 0.01", "got 3"),
    ("nn.quantization_aware(3)", TypeError, "a model of minnp.nn", "got 3 (int)"),
    ("npx.pooling(a, 2)", ValueError, "[N, C, *spatial]", "got 1", "size 1"),
    ("minnp.jvp(np.sin, (a,), (a, a))", ValueError, "a tangent for each of the 1 arguments", "got 2"),
    ("minnp.jacobian(lambda x: 'text')(a)", TypeError, "returned <U4[]", FLOATS),
    ("minnp.jacobian(lambda x: x > 1)(a)", TypeError, "returned bool[3]", FLOATS),
    ("minnp.custom_vjp(lambda x: x).defvjp(3, 4)", TypeError, "the forward rule of <lambda> is a function", "got 3"),
    ("minnp.Function(lambda x: x)", TypeError, "function", "library='torch'"),
    # what a stranger ran into
    ("minnp.grad(np.sin, 2.0)", TypeError, "argnum must be an int", "got 2.0", "grad(f)(x), not grad(f, x)"),
    ("minnp.grad(np.sin, np.array(2.0))", TypeError, "got array(2.)", "grad(f)(x), not grad(f, x)"),
    ("minnp.grad(lambda w: (np.sum(w**2), w * 3))(a)", TypeError, "2 results", "float64[3]", "has_aux=True"),
    ("minnp.value_and_grad(lambda w: {'a': w[0], 'b': w[1]})(a)", TypeError, "2 results", "has_aux=True"),
    ("minnp.grad(lambda x: x)(None)", TypeError, "argument 0", "None is a NoneType"),
    ("minnp.grad(no_pair)(1.0)", TypeError, "forward rule of <lambda> returns (result, saved)", "it returned"),
    ("minnp.vmap(lambda x: np.arange(int(x)))(a)", ValueError, "vmap", "(1,) for example 0", "(2,) for example 1"),
    ("minnp.vjp(np.sin, a)[1]('a')", TypeError, "cotangent is a number", "'a'"),
    ("minnp.vjp(np.sin, 2.0)[1](None)", ValueError, "wants 1 cotangent; got 0"),
    ("net.fit(nan, y, verbose=False)", FloatingPointError, "step 0", "x holds 2 numbers", "leave them out"),
    (
        "nn.Sequential(nn.Linear(3, 2), loss=lambda p, y: p.sum() * np.nan).fit(x3, y, verbose=False)",
        FloatingPointError,
        "step 0",
        "nothing was learned yet",
    ),
    ("net.fit(x3[:0], y[:0], verbose=False)", ValueError, "x has no examples", "(0, 3)"),
    ("net.fit(x3, y, curves=missing + '/a.png', verbose=False)", FileNotFoundError, "no folder", "missing"),
    ("nn.Embedding(5, 3).init(0)(np.array([1, -1]))", IndexError, "index -1 of 5 rows", "0 to 4"),
    ("nn.Embedding(5, 3).init(0)(np.array([5]))", IndexError, "index 5", "size 5"),
    ("np.cat([a, a])", AttributeError, "'numpy' has no attribute 'cat'", "np.concatenate"),
    ("minnp.jacfwd(np.sin)", AttributeError, "'jacfwd'", "minnp.jacobian(f, mode='forward')"),
    ("minnp.compile(net)", TypeError, "Sequential", "has none", "minnp.jit"),
    ("minnp.compile(3)", TypeError, "3 (int) has none"),
    ("sym.FullyConnected(a, num_hidden=2)", TypeError, "its input 'data' is a symbol", "ndarray"),
    ("sym.FullyConnectd(x)", AttributeError, "'FullyConnectd'", "do you mean 'FullyConnected'?"),
    ("fc.simple_bind(None, x=(1, 2)).arg_dict['fc_weigh']", KeyError, "'fc_weigh'", "x, fc_weight, fc_bias"),
    ("minnp.set_compile_budget('a')", ValueError, "more than 0 seconds, got 'a'"),
    ("net.append(nn.ReLU())", AttributeError, "'append'", "nn.Sequential(*net, layer)"),
    ("nn.Softmax()", AttributeError, "'Softmax'", "npx.softmax"),
    ("minnp.grad(lambda x: x.cuda())(a)", AttributeError, "'cuda'", "x.to_device('gpu:0')"),
    ("minnp.grad(lambda n: n(x3).sum())(net)", TypeError, "Sequential() 0: Linear", "net.tree()", "net.holding(tree)"),
    ("minnp.grad(lambda x: x)(foreign)", TypeError, "is a Foreign", "np.asarray(x)"),
    ("nn.optim.Adam(net)", AttributeError, "'Adam'", "do you mean 'adam'", "optimizer='adam'"),
    ("net.fit(x3, y, optimizer='nadam')", ValueError, "unknown optimizer", "'nadam'"),
    ("net.fit(x3, y, class_weight={0: -1.0}, verbose=False)", ValueError, "a class's weight", "-1.0"),
    (
        "net.evaluate(x3, y, metrics=['mse'])",
        ValueError,
        "the metric 'mse'",
        "outputs float32[4, 2]",
        "labels int64[4]",
    ),
    ("net.fit(x3, y, early_stopping=-1, verbose=False)", ValueError, "patience (early_stopping)", "-1"),
    ("net.fit(x3, y, early_stopping=True, verbose=False)", TypeError, "number of epochs, got True"),
    ("net.fit(x3, y, jit='yes', verbose=False)", TypeError, "jit is True or False, got 'yes'"),
    ("net.save('')", ValueError, "path of its file"),
    ("nn.optim.adam(a, a, learning_rate=-0.1)", ValueError, "learning_rate of adam", "at least 0", "-0.1"),
    ("nn.losses.binary_cross_entropy(a, 3 * a)", ValueError, "from 0 to 1", "3.0 to 9.0"),
    ("net.fit(x3, y, lr_schedule=lambda step: None, verbose=False)", TypeError, "lr_schedule(0) is a number", "None"),
    ("nn.layers.affine(x3, np.ones((3, 1)), np.ones((4, 4)))", ValueError, "a bias is one number for each", "[4, 4]"),
    ("nn.init.xavier_uniform_(a)", AttributeError, "'xavier_uniform_'", "init_rule='xavier'"),
    ("nn.init.kaiming_normal_(a)", AttributeError, "'kaiming_normal_'", "init_rule='he'"),
    ("nn.Linear(3, 2)(x3)", KeyError, "Linear has no parameter 'w'; it has no values yet: call .init()"),
    ("npx.set_np()", AttributeError, "'set_np'", "arrays are NumPy's"),
    ("npx.logsumexp(a)", AttributeError, "'logsumexp'", "minnp.scipy.special.logsumexp"),
    ("npx.tanh(a)", AttributeError, "'tanh'", "np.tanh of minnp.numpy"),
    ("minnp.vmap(np.sin, axis_size=3)", TypeError, "no argument 'axis_size'", "the batched arguments"),
    ("a.backward()", AttributeError, "'numpy.ndarray' object has no attribute 'backward'", "minnp.grad(f)(x)"),
    ("a.at[0].set(1.0)", AttributeError, "'numpy.ndarray' object has no attribute 'at'", "x[i] = v"),
    ("a.numpy()", AttributeError, "'numpy.ndarray' object has no attribute 'numpy'", "x.asnumpy()"),
]
WITHOUT = {  # where a library is not there
    "mxnet": ("minnp.set_backend('mxnet')", BackendMissingError, "needs mxnet, which is not installed", "pip install"),
    "torch": ("minnp.set_backend('torch')", BackendMissingError, "needs torch, which is not installed", "pip install"),
}


def test_there_are_two_hundred():
    assert len({program for program, *_ in MISTAKES}) >= 200


def test_a_name_of_numpy_that_is_misspelt_tells_python_where_to_look_for_a_near_one():
    with pytest.raises(AttributeError) as raised:
        _ = np.zerosss
    assert (raised.value.name, raised.value.obj) == ("zerosss", np)


@pytest.fixture(scope="module")
def scope(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messages")
    (folder / "junk.params").write_bytes(b"no file of this kind" * 6)
    numpy.save(folder / "pickled.npy", numpy.array([{}], dtype=object))
    two_cotangents, wrong_cotangent, planted = (minnp.custom_vjp(lambda x: x) for _ in range(3))
    two_cotangents.defvjp(lambda x: (x, None), lambda saved, g: (g, g))
    wrong_cotangent.defvjp(lambda x: (x, None), lambda saved, g: (np.ones(2),))
    planted.defvjp(lambda x: (x, None), lambda saved, g: (2 * g,))
    planted.__name__ = "planted"
    nan = np.ones((4, 3), "f4")
    nan[1, :2] = np.nan
    x = sym.Variable("x")
    fc = sym.FullyConnected(x, num_hidden=3, name="fc")
    node = {"op": "Convolutoin", "name": "c", "inputs": []}
    return {
        **MODULES,
        "a": np.array([1.0, 2.0, 3.0]),
        "folder": str(folder),
        "missing": str(folder / "missing"),
        "junk": str(folder / "junk.params"),
        "pickled": str(folder / "pickled.npy"),
        "two_cotangents": two_cotangents,
        "wrong_cotangent": wrong_cotangent,
        "planted": planted,
        "no_pair": minnp.custom_vjp(lambda x: x).defvjp(lambda x: x, lambda saved, g: (g,)),
        "nan": nan,
        "foreign": type("Foreign", (), {"__array__": lambda self, dtype=None, copy=None: numpy.ones(2)})(),
        "guarded": minnp.jit(lambda x: x * float(x[0]), limit=2),
        "again": minnp.jit(lambda x: x * float(x[0]), limit=2),
        "net": nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).init(0),
        "x3": np.ones((4, 3), "f4"),
        "y": np.zeros(4, int),
        "x4": np.ones((1, 1, 4, 4)),
        "x": x,
        "fc": fc,
        "misspelt": json.dumps({"nodes": [node], "arg_nodes": [], "heads": [[0, 0]]}),
    }


def check(scope, program, error, *parts):
    with pytest.raises(error) as raised:
        eval(compile(program, "user.py", "eval"), scope)
    said = "\n".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
    assert [part for part in parts if part not in said] == [], said
    assert any(frame.filename == "user.py" for frame in traceback.extract_tb(raised.value.__traceback__))


@pytest.mark.parametrize(("program", "error", "parts"), [(p, e, parts) for p, e, *parts in MISTAKES])
def test_an_error_names_the_fact_the_values_and_the_way_out(scope, program, error, parts):
    check(scope, program, error, *parts)


@pytest.mark.parametrize("library", WITHOUT)
def test_a_missing_library_is_named_with_the_line_that_installs_it(scope, library):
    if library in minnp.backends.installed():
        pytest.skip(f"{library} is installed")
    check(scope, *WITHOUT[library])


@pytest.mark.parametrize("op", ["x * t", "t * x", "x @ t", "np.multiply(x, t)"])
def test_torchs_tensors_beside_traced_arrays(scope, op):
    """Either the gradient, or the way out: no class that no page knows."""
    torch = pytest.importorskip("torch")
    product = eval(f"lambda x: ({op}).sum()", {**scope, "t": torch.ones(3, dtype=torch.float64)})
    try:
        assert np.array_equal(minnp.grad(product)(np.ones(3)), np.ones(3))
    except TracedValueError as error:
        assert "tensor of torch" in str(error) and "np.asarray(t)" in str(error)


def test_curves_say_before_the_training_that_matplotlib_is_missing(scope, monkeypatch, tmp_path):
    monkeypatch.setattr(nn.callbacks, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        nn.callbacks.Curves(tmp_path / "a.png").on_train_begin(None)


def test_a_compiler_that_is_misspelt_is_named():
    code = [sys.executable, "-c", "import minnp"]
    done = subprocess.run(code, env={**os.environ, "MINNP_COMPILER": "nome"}, capture_output=True, text=True)
    assert "MINNP_COMPILER='nome'" in done.stderr and done.returncode == 1


def test_the_ending_of_a_model_s_file_may_be_given(tmp_path):
    net = nn.Sequential(nn.Linear(3, 4)).init(0)
    saved = net.save(tmp_path / "m.params")
    assert saved == net.save(tmp_path / "m") == str(tmp_path / "m.params")
    other = nn.Sequential(nn.Linear(3, 4)).load(saved)
    assert np.array_equal(other[0].params["w"], net[0].params["w"])


def test_a_number_of_processes_that_is_none_names_its_variable(monkeypatch):
    for wrong in ("a", "0", "-1"):
        monkeypatch.setenv("WORLD_SIZE", wrong)
        with pytest.raises(minnp.distributed.MeshError, match=f"WORLD_SIZE='{wrong}'"):
            minnp.distributed.transport.world_size()


def test_a_function_of_scipys_is_named_where_it_is():
    pytest.importorskip("scipy")
    with pytest.raises(NotDifferentiableError, match=r"^minnp\.scipy\.special\.jv has no gradient"):
        minnp.grad(lambda v: minnp.scipy.special.jv(v, 1.0))(1.0)


@pytest.mark.parametrize(
    "program",
    ["from minnp.scipy import linalg", "import minnp.scipy.signal", "import minnp.scipy.special", "minnp.scipy.stats"],
)
def test_scipy_that_is_missing_is_named_with_the_line_that_installs_it(program):
    code = f"import sys; sys.modules['scipy'] = None; import minnp; {program}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install scipy" in done.stderr.splitlines()[-1], done.stderr


def test_what_lower_gives_says_how_to_look_at_it():
    assert repr(minnp.jit(lambda x: np.sin(x) + 1).lower(np.ones(2))).startswith("<lowered graph of 4 nodes: .code")


def test_of_several_results_one_may_depend_on_the_arguments():
    """Integers and constants beside it have no gradient that could be meant."""
    assert np.array_equal(minnp.grad(lambda w: (np.sum(w**2), 3, np.ones(2)))(np.ones(2)), [2.0, 2.0])
    assert np.array_equal(minnp.grad(lambda w: [np.sum(w**2)])(np.ones(2)), [2.0, 2.0])


def test_a_sequence_of_layers_is_indexed_measured_and_gone_over():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2), loss="l2_loss").init(0)
    assert [type(step).__name__ for step in net] == ["Linear", "ReLU", "Linear"]
    assert (len(net), net[-1].params["w"].shape, bool(nn.Sequential())) == (3, (4, 2), True)
    first = net[:2]
    assert type(first) is nn.Sequential and first[0] is net[0] and first.loss_function is net.loss_function
    assert np.array_equal(net[2](first(np.ones((2, 3)))), net(np.ones((2, 3))))


def test_a_call_without_a_kernel_is_named_under_a_policy_that_wants_one(scope):
    if "torch" not in minnp.backends.installed():
        pytest.skip("torch is not installed")
    with minnp.policy("only_torch"):
        check(scope, "np.frompyfunc(str, 1, 1)(a)", FallbackError, "np.str", "float64[3]", "'prefer_torch'")


def test_an_absent_gpu_is_named(scope):
    with contextlib.suppress(BackendMissingError), minnp.gpu(0):
        pytest.skip("there is a GPU")
    check(scope, "minnp.gpu(0).__enter__()", BackendMissingError, "gpu(0)", "minnp.cpu()")
