"""Where MinPy programs import their policies from: `import minnp.dispatch.policy as policy`."""
