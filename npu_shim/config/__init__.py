"""Session configurations: rewriters, parameter map, graph passes."""
