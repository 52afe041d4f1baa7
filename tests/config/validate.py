"""Prints for each file whether it is valid by the schema: `validate.py SCHEMA FILE...`."""
import json
import sys

import jsonschema
import yaml


def names_as_text(value):
    """YAML keys may be numbers; JSON's are text."""
    if isinstance(value, dict):
        return {str(key): names_as_text(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [names_as_text(inner) for inner in value]
    return value


with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as file:
        document = names_as_text(yaml.safe_load(file))
    errors = [error.message for error in validator.iter_errors(document)]
    print(path, "refused: " + errors[0].replace("\n", " ") if errors else "valid")
print("done")
