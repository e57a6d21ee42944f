"""What may change into what: rules of the schema and of a request, roles, policies."""
