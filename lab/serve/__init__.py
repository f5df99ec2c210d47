"""The lab in a browser of this machine: lessons, the run at work, reports and the drill.

In: files below results/ and the documents. Out: pages on 127.0.0.1, and commands of `connlab` that a form asks for.
It must not keep anything: what a page shows is read anew, and what a command found lies in results/.
"""
