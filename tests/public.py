"""The public functions and classes of minnp, but for those of NumPy, SciPy and MXNet under their own names."""

import importlib

import minnp

NN = "augment callbacks checkpoint datasets init io layers losses metrics model modules optim precision quantization"
NAMESPACES = [
    *(
        "minnp",
        "minnp.core",
        "minnp.context",
        "minnp.distributed",
        "minnp.errors",
        "minnp.fx",
        "minnp.kvstore",
        "minnp.npx",
    ),
    *("minnp.symbol", "minnp.symbol.contrib", "minnp.symbol.params", "minnp.dispatch.policy"),
    *(f"minnp.nn.{name}" for name in [*NN.split(), "recurrent", "solver", "summary"]),
]
# Where a module does not list its public names, or not these alone.
NAMES = {
    "minnp.symbol": """AttrScope CustomOp CustomOpProp Executor Group Model NameManager Prefix Symbol Variable
        from_mxnet load load_checkpoint load_json load_mxnet load_params register
        save_checkpoint save_params to_mxnet""",
    "minnp.symbol.contrib": "cond foreach while_loop",
    "minnp.symbol.params": "CSR RowSparse load save",
    "minnp.nn.summary": "Line Summary",
}


def public():
    """{"minnp.grad": grad, ...}, each object under its first name."""
    found = {"minnp.compile": minnp.compile}
    for namespace in NAMESPACES:
        module = importlib.import_module(namespace)
        listed = NAMES[namespace].split() if namespace in NAMES else getattr(module, "__all__", None)
        for name in listed or sorted(n for n in vars(module) if not n.startswith("_")):
            value = getattr(module, name)
            ours = callable(value) and getattr(value, "__module__", "").startswith("minnp")
            if ours and not any(value is other for other in found.values()):
                found[f"{namespace}.{name}"] = value
    found["minnp.testing.check_grads"] = importlib.import_module("minnp.testing").check_grads
    return found
