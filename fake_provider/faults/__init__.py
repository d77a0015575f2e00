"""Wire faults, one file a kind: frozen data that rewrites frames into wire actions."""
