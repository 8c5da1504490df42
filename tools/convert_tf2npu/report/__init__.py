"""What the tool says of a run, in several forms."""
