"""Functions of mx.sym.np that MXNet makes as Custom operators of its own: files have them as op_type="..._fallback"."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as onp

import minnp.numpy as np

from ..operator import Shape
from .custom import CustomOp, CustomOpProp, register


class Computed(CustomOp):
    """The result of a property's `compute`. As in MXNet there is no gradient."""

    def __init__(self, prop: Property) -> None:
        self.prop = prop

    def forward(self, is_train: bool, req: Sequence[str], in_data: Sequence, out_data: Sequence, aux: Sequence) -> None:
        self.assign(out_data[0], req[0], self.prop.compute(*in_data))

    def backward(self, req: Sequence[str], out_grad: Sequence, in_data: Sequence, *rest: Any) -> None:
        raise NotImplementedError(f"sym.np.{self.prop.name} has no gradient; stop it with sym.BlockGrad")


class Property(CustomOpProp):
    """A function of one result, by its parameters' texts."""

    name: str
    names: tuple[str, ...]

    def __init__(self, **texts: str) -> None:
        super().__init__()
        self.texts = texts

    def read(self, name: str, default: str = "None") -> Any:
        """A parameter's value."""
        return ast.literal_eval(self.texts.get(name, default))

    def list_arguments(self) -> list[str]:
        return list(self.names)

    def infer_shape(self, in_shape: list) -> tuple:
        return in_shape, [self.shape(*in_shape)], []

    def create_operator(self, ctx: Any, in_shapes: list, in_dtypes: list) -> CustomOp:
        return Computed(self)

    def compute(self, *inputs: Any) -> Any:
        raise NotImplementedError

    def shape(self, *shapes: Shape) -> Shape:
        raise NotImplementedError


@register("resize_fallback")
class Resize(Property):
    name, names = "resize", ("a",)

    def compute(self, a: Any) -> Any:
        return np.resize(a, self.read("new_shape"))

    def shape(self, a: Shape) -> Shape:
        new = self.read("new_shape")
        return (new,) if isinstance(new, int) else new


@register("unravel_index_fallback")
class UnravelIndex(Property):
    name, names = "unravel_index", ("indices",)

    def compute(self, indices: Any) -> Any:
        return np.stack(np.unravel_index(indices.astype(onp.int64), self.read("shape")))

    def shape(self, indices: Shape) -> Shape:
        dims = self.read("shape")
        return (1 if isinstance(dims, int) else len(dims), *indices)


@register("empty_like_fallback")
class EmptyLike(Property):
    name, names = "empty_like", ("prototype",)

    def compute(self, prototype: Any) -> Any:
        return np.zeros_like(prototype)

    def shape(self, prototype: Shape) -> Shape:
        return prototype

    def infer_type(self, in_type: list) -> tuple:
        dtype = self.texts.get("dtype", "None")
        return in_type, [in_type[0] if dtype == "None" else onp.dtype(dtype)], []


@register("mvn_fallback")
class MultivariateNormal(Property):
    """mean + L z for normal z and L L^T = cov; MXNet's is mean + L^T z, which has another covariance."""

    name, names = "random.multivariate_normal", ("mean", "cov")

    def compute(self, mean: Any, cov: Any) -> Any:
        z = np.random.normal(size=self.shape(mean.shape, cov.shape)).astype(mean.dtype)
        return mean + np.matmul(np.linalg.cholesky(cov), z[..., None])[..., 0]

    def shape(self, mean: Shape, cov: Shape) -> Shape:
        size = self.read("size") or ()
        size = (size,) if isinstance(size, int) else tuple(size)
        return (*size, *onp.broadcast_shapes(tuple(mean), tuple(cov[:-1])))
