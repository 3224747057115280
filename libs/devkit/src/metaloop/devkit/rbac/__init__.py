"""The permissions that the services need for some controllers, as roles, and whether they have them.

rules       what each service needs: pure
manifests   these rules as roles
review      what the API server says that an account may do
"""
