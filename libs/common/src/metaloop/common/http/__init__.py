"""A minimal HTTP/1.1 client: short requests to one server, over connections that are kept open.

A sync sends eight such requests, so their cost counts; see decision 2.
"""
