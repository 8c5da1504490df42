"""Session and run configs. The modules here are imported by name; this package imports nothing by itself."""
