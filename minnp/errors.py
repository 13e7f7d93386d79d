"""Every error class of minnp. Each docstring is a failing example and its fix."""

from __future__ import annotations


class MinnpError(Exception):
    """Base class: `except minnp.errors.MinnpError` catches whatever minnp itself raises.

    >>> try:
    ...     sym.load_json("{}")
    ... except minnp.errors.MinnpError as error:
    ...     print(type(error).__name__)
    SymbolError
    """


class NotDifferentiableError(MinnpError, TypeError):
    """A gradient flowed into an operator that has no rule for it.

        grad(np.random.gamma)(2.0)                             # a draw, whose slope in its shape has no rule

    Give the step a rule with `minnp.custom_vjp`, or cut the gradient on purpose with `np.stop_gradient(x)`.
    """


class TracedValueError(MinnpError, TypeError):
    """A traced array was about to leave minnp: a foreign library asked for its data, or Python for a number.

        grad(lambda x: scipy.ndimage.laplace(x).sum())(a)      # SciPy would compute without the tape
        grad(lambda x: math.exp(x))(2.0)                       # so would Python: float(x), x.item(), x.tolist()

    Write that step with minnp.numpy (np.exp), wrap it with `minnp.custom_vjp`, or pass `np.stop_gradient(x)`.
    """


class LostGradientWarning(UserWarning):
    """An array is written with traced values while NumPy or another library holds its memory, which shows constants.

        x = np.ones(3)
        v = numpy.asarray(x)
        grad(lambda p: x.fill(p) or v.sum())(2.0)              # v: the numbers of x, without their gradient

    Take views with minnp and inside the function (v = x[:]), or write into x.copy().
    """


class RecompilationWarning(UserWarning):
    """A function under jit has met more paths, or shapes and static values, than its limit: others run as they are.

        f = jit(lambda x: x * float(x[0]), limit=4)            # compiles for each number
        for i in range(100): f(np.array([i, 1.0]))

    Write x * x[0], pass numbers that keep changing as arrays, use np.where for branches on data, or raise jit(limit=).
    """


class CaptureError(MinnpError, RuntimeError):
    """A function that is traced without values did what a graph cannot hold.

        fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)  # a branch needs the value

    Use `minnp.jit`, which compiles a path for each way of a branch, `fx.capture(f, x)`, which follows x, or np.where.
    """


class BackendUnsupportedError(MinnpError):
    """A backend's kernel cannot take these arguments (it wrote nothing): the call falls back to NumPy.

        raise BackendUnsupportedError("integer arrays")        # in a kernel, before it writes

    `minnp.report()` shows the call with this reason.
    """


class FallbackError(MinnpError, RuntimeError):
    """Under `only_torch` (or `only_mxnet`) a call found no kernel.

        with minnp.policy("only_torch"): np.frompyfunc(abs, 1, 1)(a)

    Use `prefer_torch`, which falls back to NumPy and says so in `minnp.report()`.
    """


class BackendMissingError(MinnpError, ImportError):
    """A backend was asked for whose library is not installed.

        minnp.set_backend("mxnet")                             # pip install mxnet==1.9.1

    The message says what to install.
    """


class SymbolError(MinnpError, ValueError):
    """A `Function` was called with names or shapes its symbol does not expect; the message lists what it expects.

    >>> try:
    ...     sym.load_json("{}")
    ... except minnp.errors.SymbolError as error:
    ...     print(type(error).__name__)
    SymbolError
    """


class DrawingError(MinnpError, ImportError):
    """A picture was asked for where Graphviz is not installed.

        minnp.fx.draw(graph, "step.svg")                       # pip install graphviz; apt-get install graphviz

    The message says what to install.
    """


class MeshError(MinnpError, RuntimeError):
    """The processes of a mesh could not do a step together: they disagree, or one of them is gone.

        mesh.all_reduce(np.ones(3 + mesh.rank))                # rank 0 float64[3], rank 1 float64[4]

    Every rank must make the same calls in the same order, with arrays that fit; the message says who did what, where.
    """
