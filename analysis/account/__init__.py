"""The ledger: every observer's counts against the others', and a proven cause for each request that failed or was slow.

- `causes`: the closed list of causes, and what proves each;
- `ports`, `waits`: what held a client's ports; where the time went;
- `attribution`: the cause of each request, with its evidence;
- `identities`: what must be equal on each hop;
- `document`: derived/ledger.json;
- `records`: the Parquet files beside it.
"""
