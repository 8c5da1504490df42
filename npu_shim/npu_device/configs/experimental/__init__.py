"""Empty, as in the vendor's package."""
