"""Minutes that the processes of each lane may take together, on two cores; CONTRIBUTING has the same table.

A run never fails by time: it warns. What a later change adds beyond a budget runs at full size by a script of its own.
"""
MINUTES = {"unit": 1.0, "config": 0.5, "house": 0.5, "smoke": 0.1, "store_conformance": 20.0, "library": 2.5,
           "live": 25.0, "crash": 18.0, "browser": 6.0, "deploy": 1.5, "install": 2.5}
