"""Small programs on a place do what they do on NumPy: values, dtypes, and the type of the exception.

Each is the smallest of a kind that random programs found to differ.
"""

from __future__ import annotations

import warnings

import numpy as onp
import pytest

pytest.importorskip("torch", reason="the torch backend needs torch: pip install torch")

import minnp.numpy as np
from tests.backends.devices import THERE, on_there

pytestmark = on_there
START = {
    "f": onp.arange(6.0).reshape(2, 3),
    "s": onp.array([1.5, -2.0, 7.0], "f4"),
    "i": onp.array([3, -1, 2], "i4"),
    "u": onp.array([[5, 2, 0], [5, 2, 1]], "u1"),
    "c": onp.array([1 + 2j, 3 - 1j], "c8"),
    "e": onp.zeros((2, 0), "f4"),
    "v": onp.zeros(0),
    "k": onp.array([True, False, True]),
    "p": onp.array([1, 0]),
}
PROGRAMS = """
i += f  # the dtype does not fit, nor does the shape
i @= 3
s @= s
i[7] = 1j  # an index that is not there, a number that does not fit
i[k[:2]] = float('nan')
f[..., ...] = 1.0
out = f[..., 1:, ...]
f[0, 0] = np.ones(1)
out = e[np.array([4])]
e[1, np.array([0, 1])] = 3
out = np.concatenate([v, v], axis=1)
np.put_along_axis(f, np.array([0]), 1, 0)
np.place(s, s > 0, np.array([1.5, 2.5]))
np.putmask(c, k[:2], 3); out = c
np.put(i, [0, 1], 1j)
i.flat = 1j
np.array(2.0).flat = 0
np.fill_diagonal(f, 1j)
out = np.stack([s, s], axis=None)
out = np.tensordot(s, s)
out = np.array_split(f, np.array([0.5]))
out = s.sum(where=f > 0)
out = f.max(axis=-1, where=np.ones((2, 2, 3), bool), initial=0)
out = np.subtract.reduce(f[:, :1], 1); out += 1; out = f, out  # of one column: a copy all the same
c.real = c; out = c
c.imag = c; out = c
out = u.cumprod(axis=0); w = out.reshape(3, 2, order='F'); w += 1
out = np.sinh(np.full_like(s, 1)) * f
out = 300 | u.astype('i2')
u |= 300
out = np.clip(u, -1, None)
out = np.clip(s, 0.0, 1.0), np.clip(s, -1.0, 0.0), s.clip(-2.0, 2.0)
out = f[p, p], f[:, p], f[p[:1], 1:]
f[0] += s; f[:, 1:] *= 2; f[p] -= 1; out = f
w = f.T; f += 1; w[0] += f[0, 0]; out = f, w
out = np.sort(s), np.argsort(s), np.flip(f), np.roll(i, 1), np.triu(u), np.diff(f), np.repeat(p, 2)
out = np.vstack([s, s]), np.hstack([f, f]), np.take(f, p), np.fft.ifft(s), np.linalg.norm(i)
np.sqrt(abs(s), s); np.add(f, 1, f); out = s, f
w = f[0]; f.shape = (3, 2); w[0] = 9; f[1, 1] = 5; out = f, w
w = f.T; w.shape = (6,)
f.flags.writeable = False; f[0] = 1  # what is set about memory
f.setflags(write=False); f += 1
f.flags.writeable = False; f.flags.writeable = True; f[0] = 1; out = f, f.flags['W']
f.imag[0] = 1
w = f.view('i8'); w[0] = 0; out = f
[w.__setitem__(..., 2 * w) for w in np.nditer(f, op_flags=['readwrite'])]; out = f
np.add.at(i, [0, 0, 1], 1.5); out = i
u.astype('u2')[0] = -1  # numbers among unsigned ones
u[0] = [300, 1, 2]
w = u.astype('u4'); w[0] = s[2] + 3e9; out = w
out = np.hypot(u, -3), np.pad(u.astype('u4') * 2**30, 1, mode='mean')
out = np.array([2**63]), np.arange(2**63, 2**63 + 2), np.zeros((2, 3), order='F').flags.f_contiguous
out = np.linalg.norm(f, 1)  # one argument more than the short way takes
out = np.fft.fft(s, 6)
np.linalg.inv(np.eye(3), 1)
out = np.mean(s, out=np.zeros(())), np.var(f, 0, out=np.zeros(3, int))
np.any(f, initial=1)
out = np.logical_or.reduce(k, initial=True)
out = np.vdot(k, k), np.correlate(k, k[:2])
out = np.union1d(s, 3), np.union1d(u, 3)
out = np.outer(s, s), np.tensordot(f, f.T, 1), np.einsum('ij,kj->ik', f, f), np.diag(s), np.tile(s, 2)
out = np.outer(f, i), np.tensordot(i, i, 1), np.einsum('ij->ji', f), np.diag(f), np.tile(f, (2, 1))
out = *np.nonzero(f > 2), *np.nonzero(k)
w = np.split(f, 2); w[0][0, 0] = 9; out = f, *np.split(f, 3, axis=-1)
np.split(f, 4)
for row in f: row[0] = 7; f[1, 1] = 8
out = f, *f, *s
next(iter(np.array(2.0)))
out = i == np.array(["3", "b", "c"]), np.array(["3", "b", "c"]) != k, i == np.array([3], "M8[s]")
out = np.may_share_memory(f, f[0]), np.shares_memory(f[0], f[1]), np.shares_memory(f[::-1], f.T), np.shares_memory(f, i)
out = c**2, c**2.0, np.exp(c**2).real
out = np.isclose(f, f + 1e-9), np.isclose(s, 1.5), np.allclose(f, f), np.array_equal(f, f.T), np.array_equal(i, i)
out = np.zeros((2, 0)), np.full(3, 2.5, 'f4'), np.full(2, 3), np.full(2, 300, 'u2'), np.ones(2, bool)
out = np.eye(3, k=1), np.eye(2, 3), np.identity(2, 'u2'), np.arange(9, 2, -3), np.zeros(np.int64(2))
out = np.array([[1, 2], [3, 4]]), np.array((1, 2.0)), np.array([True]), np.array([])
np.zeros(-1)
np.array([f, 1])
np.einsum('ij,kj', f, f, dtype='f4')
np.linalg.solve(np.stack([np.eye(2)] * 2), np.ones((2, 3)))
w = c[::-1].real; w[...] = 1; out = c  # views, or none
w = c[::-1].imag; w[0] = 5; out = c
w = np.einsum('ij->ji', u); w[0] = 7; out = u
w = np.einsum('ii->i', u[:, :2]); w += 3; out = u
np.lib.stride_tricks.sliding_window_view(s, 2)[0] = 1
w = np.require(f, 'f8', 'F'); w[0] = 9; out = f
w = f.copy('F'); w.resize((2, 2), refcheck=False); out = w
out = np.meshgrid(v, v), np.polymul(v, s)[0], np.linalg.cond(np.ones((2, 2)), 1); out = *out[0], *out[1:]
np.linalg.cond(e)
out = np.linalg.norm(v, np.inf)
out = np.linalg.norm(s.astype('f2'), 3) * np.float16(0)
out = np.kaiser(5, s[0].astype('f2'))
np.putmask(v, k, s)
f.fill([1, 2])
np.vectorize(abs)(v)
np.subtract.at(f, ([0, 1], [1, 1]), 2); out = f
w = np.ma.masked_where(f > 2, f); out = w.sum(), w.mean(), np.ma.array(f, mask=f < 1).max()
out = np.isscalar(f[0, 0]), np.isscalar(f), np.isscalar(np.array(2.0)), round(s[0], 1), round(f[1, 2])
round(f)
np.take(i, [0], out=np.zeros(1))
np.dot(s, s, out=np.zeros(()))
w = f.flat[1:]; w[0] = 9; out = f, w, f.flat[2]
w = np.imag(f); w[0] = 1
w = np.real(c); w[0] = 9; out = c, np.imag(c)
w = np.broadcast_arrays(f, s)[0]; w[0] = 9; out = f
np.random.randint(300, size=3, dtype='u1')
np.random.randint(3, size=3, dtype=float)
""".strip().splitlines()


def outcome(numpy, program):
    names = {"np": numpy, **{k: numpy.array(v) for k, v in START.items()}}
    with warnings.catch_warnings(), onp.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            exec(program, names)
        except Exception as error:
            return type(error).__name__, ()
    out = names.get("out", ())
    return "", [onp.asarray(x) for x in (out if type(out) is tuple else (out,))]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_on_a_place_is_numpys(program):
    name, want = outcome(onp, program)
    with THERE:
        ours, got = outcome(np, program)
    assert ours == name
    for x, y in zip(want, got, strict=True):
        assert x.dtype == y.dtype
        onp.testing.assert_allclose(y, x, rtol=1e-6)
