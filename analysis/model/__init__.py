"""The kernel's, the servers' and the client's rules: what the settings say must happen.

In: knobs, sysctls and the roles' limits. Out: when a client sends SYNs (`ladder`), how many connections a server takes
(`capacity`), who is served and when (`users`, `outcomes`).
It must not know what was measured.
"""
