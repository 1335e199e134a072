"""The forms of bodies: what is read is validated here, what is answered is described here.

The class names, without ``Serializer``, are the names of the schemas in OpenAPI.
"""
