"""Public functions through which no gradient flows, and why: what the table prints, and what no row is missing for."""

from __future__ import annotations

# nothing that could carry a gradient goes in, or nothing comes out
CONSTANT = {
    "no array goes in": """
        bartlett blackman hamming hanning empty eye identity indices ones tri zeros diag_indices mask_indices
        tril_indices triu_indices fft.fftfreq fft.rfftfreq polynomial.chebyshev.chebgauss
        polynomial.chebyshev.chebpts1 polynomial.chebyshev.chebpts2 polynomial.hermite.hermgauss
        polynomial.hermite_e.hermegauss polynomial.laguerre.laggauss polynomial.legendre.leggauss""",
    "positions, bits and masks": """
        diag_indices_from einsum_path ix_ lexsort packbits ravel_multi_index tril_indices_from triu_indices_from
        unpackbits unravel_index alltrue array_equiv in1d iscomplex isneginf isposinf isreal nanargmax nanargmin
        sometrue npx.nonzero npx.one_hot onehot_encode""",
    "shapes, sizes and memory": """
        broadcast_shapes isfortran may_share_memory ndim shape shares_memory size npx.arange_like npx.shape_array""",
    "reads text, bytes, files or Python objects": """
        from_dlpack frombuffer fromfile fromregex fromstring genfromtxt load loadtxt""",
    "writes a file": "save savetxt savez savez_compressed",
    "text": """
        base_repr binary_repr compare_chararrays printoptions array2string array_repr array_str format_float_positional
        format_float_scientific char. strings.""",
    "dates": "busday_count busday_offset datetime_as_string datetime_data is_busday",
    "dtypes and settings": """
        geterrobj isdtype issubclass_ promote_types seterrobj polynomial.set_default_printstyle can_cast common_type
        iscomplexobj isrealobj isscalar min_scalar_type mintypecode record_op_stat result_type set_policy show_op_stat
        random.seed random.default_rng""",
    "a test of values": "testing.",
    "draws of whole numbers": """
        random.binomial random.geometric random.hypergeometric random.logseries random.multinomial
        random.negative_binomial random.poisson random.randint random.random_integers random.zipf random.bytes""",
    "steps, flat between jumps": "around round_",
    "a cut on purpose": "npx.stop_gradient",
}
# a gradient that reaches these raises NotDifferentiableError
RAISES = {
    "makes a numpy.matrix": "asmatrix bmat mat",
    "Python objects": "frompyfunc",
    "pointers of C": "ctypeslib.",
    "NumPy took it back": "fastCopyAndTranspose",
    "a draw without a path; normal, uniform, exponential and others have one": "random.",
}
_WORDS = {
    name: f"{kind}: {reason}"
    for kind, reasons in (("constant", CONSTANT), ("no: raises", RAISES))
    for reason, names in reasons.items()
    for name in names.split()
}


def why_not(name: str) -> str:
    """Why no gradient flows through np.`name`; "" for a function that is not known to have none."""
    module, dot, _ = name.partition(".")
    return _WORDS.get(name) or _WORDS.get(module + dot, "")


def why_not_through_parts(name: str) -> str:
    """Why no gradient flows through np.`name`, written with other functions; "" where it flows through them."""
    why = why_not(name)
    return why if why.startswith("constant") or name in _WORDS else ""
