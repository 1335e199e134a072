"""The soak: fifty servers, sixty-four threads and two event loops, and somebody who breaks things.

``python -m tests.soak --seconds 30 --seed 7``; see ``__main__`` for what it proves.
"""
