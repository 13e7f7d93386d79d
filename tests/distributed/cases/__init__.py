"""What the ranks of a mesh do in the tests: functions of the mesh, run on every rank; plain asserts."""
