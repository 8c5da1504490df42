"""Forms for the CPU of ops that only GPUs and NPUs compute. Import the modules by name; the package itself imports nothing."""
