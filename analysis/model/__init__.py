"""The kernel's, Tomcat's and the client's rules: what the settings say must happen.

- `ladder`: when a client sends SYNs that nothing answers.
- `capacity`: how many connections a server takes.
- `users`: who is served, when, and which SYNs are dropped, as a small simulation of both.
- `outcomes`: these for one run, from its `settings`, and the loads for which they do not hold.

The first three are pure functions of numbers.
"""
