"""What changes for a cluster when Metaloop takes over from Metacontroller.

findings    what a controller and its objects say of it: pure
collect     reads a live cluster
"""
