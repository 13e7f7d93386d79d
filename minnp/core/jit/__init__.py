"""jit: guards, the cache of specialisations, and compilation of captured graphs.

jit.py the decorator; specialisation.py one compiled graph and its guards; executor.py a graph as a callable;
compilation.py which nodes become machine code; memory_plan.py the memory of intermediate results.
May import: passes, loops, llvm, graph, api, transforms, arrays, rows, cpu, compiled.
"""
