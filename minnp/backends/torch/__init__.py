from . import elementwise, fft, indexing, linalg, products, reductions, selection, shape
