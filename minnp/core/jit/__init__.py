"""jit: guards, the cache of specialisations, and what makes a captured graph fast.

jit.py the decorator; specialisation.py one captured path, compiled; executor.py a graph as a callable; compilation.py
which nodes become machine code; memory_plan.py where intermediate results lie.
May import: passes, loops, llvm, graph, api, transforms, arrays, rows, cpu, compiled.
"""
