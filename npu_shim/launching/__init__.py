"""Plan, start, follow and end the ranks of a job."""
