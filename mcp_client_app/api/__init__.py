"""The REST API: thin viewsets over ``services``.

``urls`` lists the endpoints, ``errors`` says how failures are answered, ``viewsets`` what all
endpoints share. Nothing here decides who may: that is asked before a body is read, but the
services ask again.
"""
