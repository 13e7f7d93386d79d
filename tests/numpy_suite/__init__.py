"""NumPy's own tests as judge: the files the installed wheel ships, run with `numpy` meaning `minnp.numpy`.

    python -m tests.numpy_suite                     table of every file: NumPy passes, of those minnp passes
    python -m tests.numpy_suite test_numeric -v     one file, with its failures and their reasons
    python -m tests.numpy_suite --update            rewrite known_failures/<numpy version>.txt, keeping its reasons

Nothing is copied: `loader` is a pytest plugin that compiles the installed file with its NumPy imports redirected, `run`
runs each file in its own process (once on NumPy, once on ours) and compares test by test.
"""
