"""The vendor's order of looking for a cause: ``ladder`` walks it, ``stages`` are its steps, ``reports`` the page."""
