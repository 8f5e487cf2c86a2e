# SPDX-License-Identifier: Apache-2.0
"""json_schema.py - the part of JSON Schema that the program's schemas use: what is wrong with a value, as messages."""
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "number": (int, float), "integer": int}


def is_type(value, name):
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, TYPES[name])


def against_object(value, schema, top, at):
    problems = [f"{at}: {k} is missing" for k in schema.get("required", []) if k not in value]
    known = schema.get("properties", {})
    for key, inner in value.items():
        if key in known:
            problems += against(inner, known[key], top, f"{at}.{key}")
        elif schema.get("additionalProperties") is False:
            problems.append(f"{at}: {key} is not in the schema")
    return problems


def against(value, schema, top, at="top"):
    """What is wrong with a value: a list of messages."""
    if "$ref" in schema:
        return against(value, top["$defs"][schema["$ref"].rsplit("/", 1)[1]], top, at)
    if "anyOf" in schema:
        tries = [against(value, s, top, at) for s in schema["anyOf"]]
        return [] if [] in tries else sum(tries, [])
    if "enum" in schema and value not in schema["enum"]:
        return [f"{at}: {value!r} is none of {schema['enum']}"]
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_type(value, n) for n in names):
        return [f"{at}: {value!r} is no {' or '.join(names)}"]
    problems = []
    if "minimum" in schema and value < schema["minimum"]:
        problems.append(f"{at}: {value} is below {schema['minimum']}")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        problems.append(f"{at}: {value!r} is not {schema['pattern']}")
    if len(value if isinstance(value, (str, list)) else ()) < schema.get("minLength", schema.get("minItems", 0)):
        problems.append(f"{at}: too short")
    if isinstance(value, dict):
        problems += against_object(value, schema, top, at)
    if isinstance(value, list) and "items" in schema:
        problems += sum((against(v, schema["items"], top, f"{at}[{i}]") for i, v in enumerate(value)), [])
    return problems
