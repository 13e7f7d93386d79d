"""The programs: plain NumPy, written without knowledge of the front end that runs them."""
