"""Neural-network operators, under MXNet's names: `from minnp import npx`."""
