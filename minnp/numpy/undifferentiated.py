"""Public functions through which no gradient flows, and why: what the table prints, and what no row is missing for."""

from __future__ import annotations

# nothing that could carry a gradient goes in, or nothing comes out
CONSTANT = {
    "no array goes in": """
        bartlett blackman hamming hanning empty eye identity indices ones tri zeros diag_indices mask_indices
        tril_indices triu_indices fft.fftfreq fft.rfftfreq fromfunction""",
    "positions, bits and masks": """
        diag_indices_from einsum_path ix_ lexsort packbits ravel_multi_index tril_indices_from triu_indices_from
        unpackbits unravel_index""",
    "reads text, bytes, files or Python objects": """
        from_dlpack frombuffer fromfile fromiter fromregex fromstring genfromtxt load loadtxt""",
    "writes a file": "save savetxt savez savez_compressed",
    "text": "base_repr binary_repr compare_chararrays printoptions char. strings.",
    "dates": "busday_count busday_offset datetime_as_string datetime_data is_busday",
    "dtypes and settings": "geterrobj issubclass_ promote_types seterrobj polynomial.set_default_printstyle",
    "a test of values": "testing.",
}
# a gradient that reaches these raises NotDifferentiableError
RAISES = {
    "the matrix class": "asmatrix bmat mat",
    "Python objects": "frompyfunc nested_iters",
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
