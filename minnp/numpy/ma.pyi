"""Types of numpy.ma, whose names these are."""

from numpy.ma import *  # noqa: F403
