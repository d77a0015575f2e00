"""Wire protocols, one file each: encode replies to frames, decode and validate requests."""
