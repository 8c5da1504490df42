"""Forms for the CPU of ops that only GPUs and NPUs compute. The package itself imports nothing."""
