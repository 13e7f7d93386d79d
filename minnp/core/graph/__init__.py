"""Graphs: programs as data structures that run and print as Python, and the two ways to record one.

node.py and graph.py the data structure; interpreter.py runs it; codegen.py prints it; capture.py records a run on
concrete values (jit), symbolic.py and proxy.py a run without values (fx); closures.py what a function reads besides its
arguments; outputs.py what it returns; placement.py the devices of its arrays; embedding.py `Function`.
May import: api, transforms, arrays, rows, cpu, compiled.
"""
