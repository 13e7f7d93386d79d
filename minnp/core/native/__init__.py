"""Machine code for jit, through LLVM where llvmlite is installed; program.py says what is compiled."""
