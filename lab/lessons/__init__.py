"""Lessons: what somebody expects is asked before a run, and shown beside what was measured after it.

In: a scenario and its lesson, answers from a terminal. Out: the predictions of a person beside the verdict.
It must not know how a run works.
"""
