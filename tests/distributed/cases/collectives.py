"""Collectives against NumPy on all ranks' arrays, and their gradients."""

import functools
import os
from pathlib import Path

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import distributed, grad, jit, jvp, vjp, vmap
from minnp.errors import MeshError

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
DTYPES += ["float16", "float32", "float64", "complex64", "complex128"]


def arrays(mesh, shape, dtype="float64", seed=0):
    """What each rank has, known on every rank."""
    rng = onp.random.default_rng(seed)
    out = []
    for _ in range(mesh.size):
        x = rng.integers(1, 5, shape)
        out.append((x if onp.dtype(dtype).kind in "biu" else x + rng.random(shape)).astype(dtype))
    return out


def reductions(mesh):
    for dtype in DTYPES:
        for shape in [(), (3,), (2, 0), (40, 5)]:
            xs = arrays(mesh, shape, dtype)
            for op, f in {"sum": onp.sum, "mean": onp.mean, "max": onp.max, "min": onp.min, "prod": onp.prod}.items():
                if dtype.startswith("complex") and op in ("max", "min") and shape == (40, 5):
                    continue
                y = mesh.all_reduce(np.asarray(xs[mesh.rank]), op)
                expected = f(onp.stack(xs), axis=0)
                onp.testing.assert_allclose(y, expected, rtol=3e-3 if dtype == "float16" else 1e-6)
                if op in ("max", "min"):
                    assert y.dtype == xs[0].dtype
            assert mesh.all_reduce(xs[mesh.rank]).dtype == (onp.int64 if dtype == "bool" else xs[0].dtype)


def gathers(mesh):
    for dtype in DTYPES:
        for axis in (0, 1, -1):
            for k in (1, 40):
                sizes = [(2 * k, 3) if axis else (k * (r % 3), 3) for r in range(mesh.size)]
                if axis:
                    sizes = [(2 * k, r % 2 + 1) for r in range(mesh.size)]
                xs = [arrays(mesh, s, dtype, r)[0] for r, s in enumerate(sizes)]
                y = mesh.all_gather(xs[mesh.rank], axis)
                onp.testing.assert_array_equal(y, onp.concatenate(xs, axis))
                assert y.dtype == xs[0].dtype
    words = mesh.all_gather(np.array(["a" * (mesh.rank + 1) for _ in range(2)], "U9"))
    assert words.tolist() == ["a" * (r + 1) for r in range(mesh.size) for _ in range(2)]


def exchanges(mesh):
    for shape, split, concat in [((7, 3), 0, 1), ((7, 3), 1, 0), ((7, 3), 0, 0), ((2, 50, 9), 1, 2)]:
        xs = arrays(mesh, shape, "float32")
        y = mesh.all_to_all(xs[mesh.rank], split, concat)
        expected = onp.concatenate([onp.array_split(x, mesh.size, split)[mesh.rank] for x in xs], concat)
        onp.testing.assert_array_equal(y, expected)
        back = mesh.all_to_all(y, concat, split) if split != concat and mesh.size == 1 else None
        assert back is None or onp.array_equal(back, xs[mesh.rank])
        total = mesh.reduce_scatter(xs[mesh.rank], split)
        expected = onp.array_split(sum(xs), mesh.size, split)[mesh.rank]
        onp.testing.assert_allclose(total, expected, rtol=1e-6)
    for shape in [(), (3,), (30, 30)]:
        xs = arrays(mesh, shape)
        root = mesh.size - 1
        onp.testing.assert_array_equal(mesh.broadcast(xs[mesh.rank], root), xs[root])
        expected = sum(xs) if mesh.rank == root else 0 * xs[0]
        onp.testing.assert_allclose(mesh.reduce(xs[mesh.rank], root), expected)
    mesh.barrier()


def numbers(mesh):
    """A number in, a number out."""
    n = mesh.all_reduce(1)
    assert n == mesh.size and n.dtype == onp.int64 and not isinstance(n, onp.ndarray)
    assert float(mesh.all_reduce(2.5, "mean")) == 2.5
    assert mesh.all_gather([mesh.rank]).tolist() == list(range(mesh.size))


def memory(mesh):
    """What a collective returns is nobody else's memory, also on a mesh of one."""
    x = np.arange(3.0)
    for y in (mesh.all_reduce(x), mesh.all_gather(x), mesh.broadcast(x), mesh.all_to_all(x), mesh.reduce_scatter(x)):
        y[...] = -1
    assert x.tolist() == [0, 1, 2]


LINEAR = {
    "sum": lambda mesh, x: mesh.all_reduce(x),
    "mean": lambda mesh, x: mesh.all_reduce(x, "mean"),
    "gather": lambda mesh, x: mesh.all_gather(x, 1),
    "scatter": lambda mesh, x: mesh.reduce_scatter(x, 0),
    "exchange": lambda mesh, x: mesh.all_to_all(x, 0, 1),
    "exchange along one axis": lambda mesh, x: mesh.all_to_all(x, 0, 0),
    "exchange back": lambda mesh, x: mesh.all_to_all(x, 1, 0),
    "broadcast": lambda mesh, x: mesh.broadcast(x, mesh.size - 1),
    "reduce": lambda mesh, x: mesh.reduce(x),
}


def transposes(mesh):
    """<A x, g> = <x, A^T g>, summed over ranks: what it is to be the transpose."""
    dot = lambda a, b: float(mesh.all_reduce(np.sum(a * b)))
    for name, f in LINEAR.items():
        for scale in (1, 9):
            x, t = (arrays(mesh, (5 * scale, 3 * scale), seed=s)[mesh.rank] for s in (1, 2))
            on_mesh = functools.partial(f, mesh)
            y, pullback = vjp(on_mesh, np.asarray(x))
            g = onp.random.default_rng(mesh.rank).random(y.shape)
            onp.testing.assert_allclose(dot(on_mesh(t), g), dot(t, pullback(g)[0]), rtol=1e-12, err_msg=name)
            onp.testing.assert_allclose(jvp(on_mesh, (x,), (t,))[1], on_mesh(t), rtol=1e-12, err_msg=name)


def nonlinear(mesh):
    """Gradients of extremes and products, second ones too, against differences of the sum over ranks."""
    total = lambda y: float(mesh.all_reduce(np.sum(y)))
    weight = onp.random.default_rng(mesh.rank).random(4)
    for op in ("max", "min", "prod", "sum"):
        f = lambda x, op=op: np.sum(np.sin(mesh.all_reduce(x, op)) * weight)
        h = lambda x, f=f: np.sum(grad(f)(x) ** 2)
        x = arrays(mesh, 4, seed=3)[mesh.rank]
        for function in (f, h):
            g = grad(function)(x)
            for rank in range(mesh.size):
                e = onp.zeros(4)
                if rank == mesh.rank:
                    e[1] = 1e-6
                slope = (total(function(x + e)) - total(function(x - e))) / 2e-6
                if rank == mesh.rank:
                    onp.testing.assert_allclose(g[1], slope, rtol=1e-4, atol=1e-6, err_msg=op)
    ones = grad(lambda x: mesh.all_reduce(x, "max"))(1.0)
    assert float(mesh.all_reduce(ones)) == mesh.size  # those that have it share what flows


def zero_products(mesh):
    x = np.array([0.0 if mesh.rank == 0 else 3.0, 2.0])
    g = grad(lambda x: np.sum(mesh.all_reduce(x, "prod")))(x)
    others = 3.0 ** (mesh.size - 1) if mesh.rank == 0 else 0.0
    onp.testing.assert_allclose(g, mesh.size * onp.array([others, 2.0 ** (mesh.size - 1)]))


def under_jit_and_vmap(mesh):
    def f(x):
        y = mesh.all_reduce(np.sin(x)) * 2
        return mesh.all_gather(y[:2] * mesh.rank).sum() + y.sum()

    x = np.asarray(arrays(mesh, 4, seed=5)[mesh.rank])
    compiled = jit(f)
    for _ in range(3):
        onp.testing.assert_allclose(compiled(x), f(x))
        onp.testing.assert_allclose(jit(grad(f))(x), grad(f)(x))
        x = x + 1.0
    batch = np.arange(6.0).reshape(3, 2) + mesh.rank
    onp.testing.assert_allclose(vmap(mesh.all_reduce)(batch), mesh.all_reduce(batch))


def disagreements(mesh):
    if mesh.size == 1:
        return
    r = mesh.rank
    for wrong, said in [
        (lambda: mesh.all_reduce(np.ones(3 + (r == 1))), ["shape", "float64[3]", "float64[4]", "rank 0", "rank 1"]),
        (lambda: mesh.all_reduce(np.ones(3, "f4" if r else "f8")), ["dtype", "<f8[3]", "<f4[3]"]),
        (lambda: mesh.all_reduce(1.0, "max" if r else "sum"), ["by", "max", "sum"]),
        (lambda: mesh.all_gather(1.0 * np.ones(3)) if r else mesh.all_reduce(np.ones(3)), ["all_gather", "all_reduce"]),
        (lambda: mesh.all_gather(np.ones((3, 2 + r))), ["beside"]),
        (lambda: mesh.broadcast(np.ones(3), r % 2), ["root"]),
        (lambda: mesh.barrier() if r else mesh.all_reduce(2), ["barrier", "all_reduce"]),
    ]:
        with pytest.raises(MeshError) as error:
            wrong()
        text = str(error.value).replace("<f8[", "float64[") if "float64[3]" in said else str(error.value)
        assert all(part in text for part in said), text
        assert text.count("collectives.py:") == 2, text
    with pytest.raises(ValueError, match="ask for"):
        mesh.reduce_scatter(np.ones(5), size=4)
    assert mesh.all_reduce(1) == mesh.size  # and the mesh is whole after all of that


def arguments(mesh):
    with pytest.raises(ValueError, match="known: sum, mean"):
        mesh.all_reduce(1, "median")
    with pytest.raises(ValueError, match="axis 2 of an array of shape"):
        mesh.all_gather(np.ones((2, 2)), 2)
    with pytest.raises(ValueError, match="rank 7"):
        mesh.broadcast(1, 7)
    with pytest.raises(TypeError, match="object"):
        mesh.all_reduce(onp.array([None, 3]))
    with pytest.raises(ValueError, match="not the"):
        distributed.init((mesh.size, 2))
    with pytest.raises(TypeError, match="cannot be copied"):
        __import__("copy").copy(mesh)


def axes(mesh):
    rows = 2 if mesh.size % 2 == 0 else 1
    grid = distributed.init((rows, -1), ("rows", "columns"))
    assert grid.shape == (rows, mesh.size // rows) and grid.size == mesh.size
    i, j = grid.coordinates
    assert grid.rank == i * grid.shape[1] + j
    across, down = grid.axis("columns"), grid.axis(0)
    assert (across.size, down.size, across.rank, down.rank) == (grid.shape[1], rows, j, i)
    assert across.all_gather([mesh.rank]).tolist() == [i * grid.shape[1] + k for k in range(grid.shape[1])]
    assert down.all_reduce(10.0**i) == sum(10.0**k for k in range(rows))
    with pytest.raises(ValueError, match="rows, columns"):
        grid.axis("depth")


def listening(mesh):
    """No port of this process is open to other machines."""
    fds = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    mine = {os.readlink(fd) for fd in fds if os.path.lexists(fd)}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in mine:
                assert local.split(":")[0] == "0100007F", line
