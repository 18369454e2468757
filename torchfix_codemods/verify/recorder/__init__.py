"""Records what a program does with torch, from inside, without a change to it.

Runs in the user's interpreter, under the name `torchfix_recorder`: it uses the standard library and the torch that it
finds there, nothing else of this package, and no syntax that is newer than Python 3.8.
"""
