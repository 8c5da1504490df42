"""Session and run configs, and install(). Import the modules by name; the package itself imports nothing."""
