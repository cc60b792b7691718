"""HTTP as every service's API answers it: problems (RFC 9457) and the OpenAPI document."""
