"""Graphs: programs as data structures that run and print as Python, and the two ways to record one.

node.py and graph.py the data structure; interpreter.py runs it; codegen.py prints it; capture.py records a run on
concrete values (jit), symbolic.py and proxy.py a run without values (fx); closures.py what a function reads besides its
arguments, operands.py what it reads of that beside traced values alone, syntax.py its source as a tree; outputs.py what
it returns; placement.py the devices of its arrays; embedding.py `Function`.
May import: api, transforms, arrays, rows, cpu, compiled.
"""
