"""The program that runs inside a sandbox: standard library only, no import of the rest of klearbench.

    zygote      one a slot: jailed once, warm; forks a process for each submission
    submission  one a submission: holds its source and compiled code; forks a process for each test, limits and reaps it
    child       one a test: drops every right, then runs the program

Only the child ever runs a line of a submitted program.
"""
