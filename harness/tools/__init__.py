"""The effect server and its ledger: the witness outside the runtime."""
