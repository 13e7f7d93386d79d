"""Neural-network operators, under MXNet's names: `from minnp import npx`."""

from . import activation, convolution, norm, pool, recurrent
