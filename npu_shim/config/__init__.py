"""Session and run configs. Import the modules by name; the package itself imports nothing."""
