"""Reports of profiles: text and one HTML page. Each is made from the result alone."""
