"""The nouns of a study; this room imports no other."""
