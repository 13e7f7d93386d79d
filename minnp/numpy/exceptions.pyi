"""Types of numpy.exceptions, whose names these are."""

from numpy.exceptions import *  # noqa: F403
