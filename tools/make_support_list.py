"""Make convert_tf2npu/report/support_list.json: how far the vendor supports each name of TensorFlow 1.15.

``python tools/make_support_list.py LIST.json > tools/convert_tf2npu/report/support_list.json`` where
LIST.json maps API names to ``status``. Names that only tf.compat has are left out: the tool spells each
name without it. Where a finding is told, make_api_support.py decides, and what it says comes first.
"""
from __future__ import annotations

import json
import sys
from typing import Dict, List

from make_api_support import canonical_name

# The list's statuses, as the tool calls them; see report/support.py for what they mean.
_STATUSES = {
    'supported_no_change': 'supported',
    'supported_after_tool_migration': 'migrated',
    'training_works_after_tool_migration': 'migrated',
    'unsupported_no_impact': 'ignored',
    'deprecated': 'deprecated',
    'under_analysis': 'unexamined',
    'unsupported_avoid': 'unsupported',
}
# Where the tool knows better: a question and two switches of Python's behaviour that do nothing in a graph,
# and an optimizer that a rule takes off.
_DECIDED = {
    'tf.executing_eagerly': 'ignored',
    'tf.enable_tensor_equality': 'ignored',
    'tf.enable_v2_tensorshape': 'ignored',
    'tf.tpu.CrossShardOptimizer': 'migrated',
    'tf.contrib.tpu.CrossShardOptimizer': 'migrated',
}


def support_list(rows: Dict[str, Dict[str, str]]) -> Dict[str, Dict[str, str]]:
    """Status -> module -> the last words of its names, with blanks between them."""
    found: Dict[str, Dict[str, List[str]]] = {}
    for name, row in sorted(rows.items()):
        if row['status'] in _STATUSES:
            module, _, last = canonical_name(name).rpartition('.')
            status = _DECIDED.get(name, _STATUSES[row['status']])
            found.setdefault(status, {}).setdefault(module, []).append(last)
    return {status: {module: ' '.join(sorted(set(names))) for module, names in sorted(modules.items())}
            for status, modules in sorted(found.items())}


def main() -> int:
    if len(sys.argv) != 2:
        print('usage: python tools/make_support_list.py LIST.json', file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding='utf-8') as stream:
        listed = json.load(stream)
    print(json.dumps({'tensorflow': listed['meta']['tensorflow'], 'names': support_list(listed['apis'])},
                     indent=1))
    return 0


if __name__ == '__main__':
    sys.exit(main())
