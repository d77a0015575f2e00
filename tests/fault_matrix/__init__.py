"""What the official clients make of every fault: a run against a real provider, and the page of what was seen."""
