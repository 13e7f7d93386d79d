"""Graphs: a program as data, that prints as Python and runs, and the two ways to record one.

node.py and graph.py the data; interpreter.py runs it; codegen.py prints it; capture.py records a run on real values
(jit), symbolic.py and proxy.py a run without values (fx); closures.py what a function reads beside its arguments;
outputs.py what it returns; placement.py in which memory its arrays lie; embedding.py `Function`.
May import: api, transforms, arrays, rows, cpu, compiled.
"""
