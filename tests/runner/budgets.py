"""Minutes that the processes of each lane may take together, on two cores; CONTRIBUTING has the same table.

A run never fails by time: it warns. What a later change adds beyond a budget runs at full size by a script of its own.
"""
MINUTES = {"unit": 1.0, "config": 0.5, "house": 0.5, "smoke": 0.1, "store_conformance": 5.0, "library": 1.5,
           "live": 8.0, "crash": 4.0, "browser": 2.0, "deploy": 1.0, "install": 1.0}
