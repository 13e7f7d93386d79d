"""Transformations: grad, jvp, vmap and what is built on them. Each is a Trace with `process(row, values, params)`.

trace.py the base class; tape.py and cotangents.py reverse mode, grad.py its functions; jvp.py forward mode; vmap.py;
rematerialisation.py checkpoint; derivatives.py jacobian, hessian, custom rules.
May import: arrays, rows, cpu, compiled.
"""
