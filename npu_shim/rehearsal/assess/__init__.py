"""Assessment of the graph that a script builds, for a card: operators, partition, shapes, memory, work per step."""
