"""Tables of cases: what a function is given, what it must give back, and how far off it may be."""
