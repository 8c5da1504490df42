"""Write volcano_job.json, the JSON schema of the Job of Volcano without its pods, from the resource definition of Volcano.

    python tests/schemas/make_volcano_job.py config/crd/volcano/bases/batch.volcano.sh_jobs.yaml

The path is that of the file in a checkout of https://github.com/volcano-sh/volcano. test_cluster_manifests.py validates
pods with the schemas of Kubernetes.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import yaml

SCHEMA = pathlib.Path(__file__).with_name("volcano_job.json")
OF_KUBERNETES = ("template", "volumeClaim")
KEPT = ("type", "enum", "required", "minimum", "minLength", "maxLength", "minItems", "pattern")


def main(path: str) -> None:
    """Write the schema of the version that a Job has by default."""
    definition = yaml.safe_load(pathlib.Path(path).read_text())
    (version,) = [one for one in definition["spec"]["versions"] if one["storage"]]
    root = version["schema"]["openAPIV3Schema"]
    root["properties"].pop("status")
    group = definition["spec"]["group"]
    schema = {
        "$comment": f"Made by {pathlib.Path(__file__).name} from a file of https://github.com/volcano-sh/volcano "
        "(Apache-2.0). Do not edit.",
        **reduced(root),
        "required": ["apiVersion", "kind", "metadata", "spec"],
    }
    schema["properties"]["apiVersion"] = {"enum": [f"{group}/{version['name']}"]}
    schema["properties"]["kind"] = {"enum": [definition["spec"]["names"]["kind"]]}
    SCHEMA.write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n")


def reduced(node: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without descriptions and defaults, in which a field that it does not name is an error."""
    found = {name: node[name] for name in KEPT if name in node}
    if "properties" in node:
        found["properties"] = {
            name: {"type": "object"} if name in OF_KUBERNETES else reduced(one)
            for name, one in node["properties"].items()
        }
        found["additionalProperties"] = False
    if "additionalProperties" in node:
        found["additionalProperties"] = reduced(node["additionalProperties"])
    if "items" in node:
        found["items"] = reduced(node["items"])
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
