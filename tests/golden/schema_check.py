# SPDX-License-Identifier: Apache-2.0
"""The part of JSON Schema that docs/schema uses, in strict form: a field that the schema does not tell is an error, too."""
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$id", "title", "description", "type", "required", "properties", "additionalProperties", "items", "enum", "const"}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def complaints(value, schema, place="$"):
    """Where the value is not what the schema says, one line each."""
    if not schema:
        return  # may be anything
    unknown = set(schema) - KNOWN
    if unknown:
        raise ValueError(f"{place}: this check does not know {sorted(unknown)}")
    if "const" in schema and value != schema["const"]:
        yield f"{place}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r} is none of {schema['enum']}"
    allowed = schema.get("type", [])
    allowed = [allowed] if isinstance(allowed, str) else allowed
    if allowed and not any(is_type(value, name) for name in allowed):
        yield f"{place}: {str(value)[:60]!r} is not of type {' or '.join(allowed)}"
    elif isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{place}: {name} is missing"
        for name, held in value.items():
            told = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if told is None:
                yield f"{place}.{name}: is not in the schema"
            else:
                yield from complaints(held, told, f"{place}.{name}")
    elif isinstance(value, list):
        for i, held in enumerate(value):
            yield from complaints(held, schema.get("items", {}), f"{place}[{i}]")
